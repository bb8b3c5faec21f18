"""Notes where the storages of torch's tensors come from, while a program runs without a GPU.

A storage is *made* if the program allocates it, and *computed* if torch calculates it. Its values are not
compared, only what the program fills it with. A tensor created without a device lies on the host until the
program moves it.
"""

from __future__ import annotations

import functools

from .. import corpus_api, storages

_FILLS = {"zeros": "zeros", "ones": "ones", "empty": "empty", "empty_strided": "empty"}
_MAKES = (
    "arange as_tensor empty empty_strided eye frombuffer from_numpy full linspace logspace normal ones"
    " rand randint randn randperm scalar_tensor tensor zeros"
).split()
_ONLY_VIEWS = frozenset(
    "as_strided_ detach_ rename_ requires_grad_ share_memory_ squeeze_ swapaxes_ swapdims_ t_"
    " transpose_ unsqueeze_".split()
)
"""They write no value, though their names end in `_`."""

PINNED = "pinned"
"""The device of a tensor on the host that kernels may read."""


def note(function, args, kwargs, result, device):
    """device: `cuda`, `cuda:1`, `cpu`, `pinned` or another that the call names; empty if it names none."""
    name = getattr(function, "__name__", "").removeprefix("new_").removesuffix("_like")
    if result is None and _writes(name):
        result = args[0]
    for tensor in _tensors(result):
        try:
            storage = tensor.untyped_storage()
            origin = storages.origin_of_torch(storage)
            if origin is None:
                provenance = "made" if name in _MAKES else "computed"
                where = device or _device_of((*args, *kwargs.values())) or default_device
                kind, fill = f"{provenance} as {_kind_of(tensor)}", _fill_of(name, args, kwargs)
                storages.label(storage, tensor, storages.StorageOrigin(kind, fill, where))
            elif _writes(name) or kwargs.get("out") is not None:
                whole = tensor.numel() * tensor.itemsize == storage.nbytes()
                origin.state = _written(name, args, kwargs) if whole else ""
        except (NotImplementedError, RuntimeError):  # a tensor that has no storage of its own
            continue


default_device = "cuda"
"""The device of tensors that are created without one."""


def install(torch):
    """Storages are written to past torch's functions of tensors, too."""
    for owner in (torch.UntypedStorage, torch.TypedStorage):
        for name in ("fill_", "copy_"):
            setattr(owner, name, _noting_writes(getattr(owner, name), name))


def _noting_writes(function, name):
    @functools.wraps(function)
    def write(storage, *args, **kwargs):
        result = function(storage, *args, **kwargs)
        untyped = getattr(storage, "_untyped_storage", storage)
        origin = storages.origin_of_torch(untyped)
        if origin is not None:
            fill = corpus_api.fill_word(args[0]) if name == "fill_" and args else ""
            are_bytes = untyped is storage and fill not in ("", "zeros")
            origin.state = f"bytes of {fill}" if are_bytes else fill
        return result

    return write


def set_default_device(device):
    global default_device
    default_device = str(device or "cpu").partition(":")[0]


def device_of(tensor):
    """Returns `cpu` for a tensor that lies on the host; else empty."""
    origin = origin_of(tensor)
    return "cpu" if origin is not None and origin.device in ("cpu", PINNED) else ""


def device_like(tensor):
    """Returns the device of a tensor, as `note` takes it."""
    origin = origin_of(tensor)
    return (origin.device if origin is not None else "") or "cuda"


def origin_of(tensor):
    """Returns None if torch created the storage by itself, or the tensor has no storage."""
    try:
        return storages.origin_of_torch(tensor.untyped_storage())
    except (NotImplementedError, RuntimeError):
        return None


def is_host(values):
    return _device_of(values) == "cpu"


def moved(tensor, device, copied):
    """Returns the tensor itself if it is known to lie on that device, else what `copied` makes of it."""
    origin = origin_of(tensor)
    here = origin.device if origin is not None else ""
    if device in (here, "cpu" if here == PINNED else ""):
        return tensor
    fill = origin.state if origin is not None else ""
    copy = copied(tensor, has_values=fill not in ("empty", "zeros"))
    try:
        storage = copy.untyped_storage()
    except (NotImplementedError, RuntimeError):  # it has none of its own
        return copy
    # so `randn(8).cuda()` is what `randn(8, device="cuda")` is
    new = origin.first_copy(device) if here in ("cpu", PINNED) else None
    new = new or storages.StorageOrigin(f"computed as {_kind_of(copy)}", fill, device)
    storages.label(storage, copy, new)
    return copy


def note_array(tensor):
    """No mode of torch sees how a tensor of an array is made. Others may have written to the array."""
    storage = tensor.untyped_storage()
    if storages.origin_of_torch(storage) is None:
        origin = storages.StorageOrigin(f"made as {_kind_of(tensor)}", device=default_device)
        origin.launches_before = None
        storages.label(storage, tensor, origin)


def note_memory(tensor):
    """DLPack gives a tensor a storage of its own for the memory of another one."""
    storage = tensor.untyped_storage()
    place = storages.place_at(storage.data_ptr())
    if place is not None and not place.offset_bytes and storages.origin_of_torch(storage) is None:
        storages.label(storage, tensor, place.origin)


def _tensors(result):
    items = result if isinstance(result, (tuple, list)) else (result,)
    return [item for item in items if hasattr(item, "untyped_storage")]


def _device_of(values):
    """Returns the device on which torch computes with these tensors; empty if there are none. A number of the
    host, which has no dimensions, may be used on the GPU.
    """
    tensors = list(_nested(values))
    devices = [device_like(tensor) for tensor in [each for each in tensors if each.dim()] or tensors]
    of_gpus = [device for device in devices if device not in ("cpu", PINNED)]
    return of_gpus[0] if of_gpus else "cpu" if devices else ""


def _nested(values):
    for value in values:
        if hasattr(value, "untyped_storage"):
            yield value
        elif isinstance(value, (tuple, list)):
            yield from _nested(value)


def _kind_of(tensor):
    return storages.kind(corpus_api.dtype_name(tensor.dtype), tuple(tensor.shape))


def _fill_of(name, args, kwargs):
    if name == "full":  # `new_full` has the tensor before the size
        number = args[-1] if len(args) > 1 else None
        return corpus_api.fill_word(kwargs.get("fill_value", number))
    return _FILLS.get(name, "")


def _writes(name):
    return name == "__setitem__" or (
        name.endswith("_") and not name.endswith("__") and name not in _ONLY_VIEWS
    )


def _written(name, args, kwargs):
    """Reads the fill from the name of a function: `torch.Tensor`, `torch._foreach_…_`, `torch.nn.init`, and
    what makes a tensor in the place of another (`out=`).
    """
    name = name.removeprefix("_foreach_")
    if name in _WRITTEN:
        return _WRITTEN[name]
    if name == "full":
        return _fill_of(name, args, kwargs)
    if name == "__setitem__":
        return corpus_api.fill_word(args[2]) if _is_whole(args[1]) else ""
    numbers = [*args[1:2], *(kwargs[key] for key in ("value", "val") if key in kwargs)]
    return corpus_api.fill_word(numbers[0]) if name in ("fill_", "constant_") and numbers else ""


_WRITTEN = {"zero_": "zeros", "zeros_": "zeros", "ones_": "ones", "zeros": "zeros", "ones": "ones"}


def _is_whole(index):
    """True if it names all elements."""
    parts = index if isinstance(index, tuple) else (index,)
    return all(part is ... or (isinstance(part, slice) and part == slice(None)) for part in parts)
