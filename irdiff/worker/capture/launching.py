"""The `launch` stage: what the program passes at a launch (grid, arguments, options, autotuners, hooks) and
the order of its calls, one fact a line, in words that all releases of Triton share. What the compiler adds
for the driver, such as the size of shared memory, is not in it: irdiff compares that as launch metadata.

Arguments are read at the launch (`seen`), and named when the entry has ended (`Calls`), because only then the
number of storages of each kind is known.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import struct
from collections.abc import Sequence
from typing import NamedTuple

from .. import corpus_api, storages
from ..texts import jit_function, sha256_of_file, text_of
from . import noted
from .describe import TRITON_ROOT, is_temporary_file, kernel_name

_NAN_BITS = "7ff8000000000000"
"""The bits of the NaN that `float` makes. For a kernel, a NaN with another sign or payload is another value.
"""
_ALIGNED_BYTES = 16
"""The alignment that Triton specializes pointers on."""


class TensorArgument(NamedTuple):
    facts: str
    origin: storages.StorageOrigin
    state: str
    held: Sequence = ()
    """[(index, `storages.Place`)] of the addresses that the tensor holds."""


def seen(captured):
    """Lists (name, text or `TensorArgument`) at this moment. Arguments are numbered, because the sides may
    name them differently.
    """
    constants = _constants(captured.function)
    passed = (value for name, value in captured.bound.items() if name not in constants)
    return [line for number, value in enumerate(passed, 1) for line in _seen(f"argument {number}", value)]


def launched(captured):
    """The kernel may have written to the storages of its arguments, and to those that they point to."""
    for _, value in captured.arguments:
        if isinstance(value, TensorArgument):
            for origin in (value.origin, *(place.origin for _, place in value.held)):
                origin.state = ""


def _seen(name, value):
    if isinstance(value, (tuple, list)):
        for number, item in enumerate(value):
            yield from _seen(f"{name}.{number}", item)
    elif hasattr(value, "block_shape") and hasattr(value, "base"):
        yield from ((f"{name} {field}", text) for field, text in _fields(value))
        yield name, _tensor(value.base)
    elif hasattr(value, "data_ptr"):
        yield name, _tensor(value)
    elif isinstance(value, int) and (place := storages.place_at(value)) is not None:
        yield (
            name,
            TensorArgument(f"address, offset {place.offset_bytes} bytes", place.origin, place.origin.state),
        )
    else:
        yield name, _value(value)


def _tensor(tensor):
    place, address = storages.place_of(tensor), tensor.data_ptr()
    size = corpus_api.size_of(tensor.dtype)
    aligned = min(address & -address or _ALIGNED_BYTES, _ALIGNED_BYTES)
    unit = (
        f"{place.offset_bytes // size}" if place.offset_bytes % size == 0 else f"{place.offset_bytes} bytes"
    )
    facts = (
        f"{corpus_api.dtype_name(tensor.dtype)} {_json(corpus_api.shape_of(tensor))}",
        f"strides {_json(corpus_api.strides_of(tensor))}",
        f"offset {unit}",
        f"aligned to {aligned} bytes",
        *([f"on {place.origin.device}"] if place.origin.device not in ("", "cuda", "cpu") else []),
    )
    return TensorArgument(", ".join(facts), place.origin, place.origin.state, storages.held_by(tensor))


class Calls:
    """Describes the calls of one entry of LAUNCHES."""

    def __init__(self):
        self._here: dict = {}
        self._first: dict = {}
        """{storage: the kernel that it was seen at first, and the key of that call}"""
        self._last: dict = {}
        """{(key, storage): the last call of the key that had it, and which argument of it}"""
        self._counts: dict = {}
        self._key: tuple = ()

    def lines(self, captured, key):
        """`key` is the same for calls of one specialization."""
        tensors = {value.origin for _, value in captured.arguments if isinstance(value, TensorArgument)}
        ranks = {origin: n for n, origin in enumerate(sorted(tensors, key=lambda origin: origin.order))}
        self._here, self._key = {}, key
        self._counts[key] = self._counts.get(key, 0) + 1
        lines = [f"grid: {_json(captured.grid)}"]
        lines += [f"{name}: {number}" for name, number in captured.queue.items() if number]
        lines += [f"option {name}: {_value(value)}" for name, value in sorted(captured.call_options.items())]
        for name, value in captured.arguments:
            words = (
                value if isinstance(value, str) else self._tensor(kernel_name(captured), name, value, ranks)
            )
            lines.append(f"{name}: {words}")
        for origin, name in self._here.items():
            self._first.setdefault(origin, (kernel_name(captured), key))
            self._last[key, origin] = self._counts[key], name
        return lines

    def _tensor(self, kernel, name, tensor, ranks):
        origin = tensor.origin
        self._here.setdefault(origin, name)
        words = [tensor.facts, f"storage {ranks[origin]}", origin.words]
        words += [f"filled with {tensor.state}"] if tensor.state not in ("", "normal") else []
        words += [
            f"word {index} is the address of {place.origin.words}, offset {place.offset_bytes} bytes"
            for index, place in tensor.held
        ]
        first_kernel, key = self._first.get(origin, (kernel, None))
        if first_kernel != kernel:
            call, first_name = self._last[key, origin]
            since = self._counts[key] - call
            which = f"'s call {since} before its last" if since else ""
            words.append(f"was {first_name} of an earlier kernel{which}")
        if last := self._last.get((self._key, origin)):
            call, last_name = last
            distance = self._counts[self._key] - call
            words += [f"was {last_name} of {'the call' if distance == 1 else f'{distance} calls'} before"]
        return ", ".join(words)


def _constants(function):
    """A launch does not pass constants; their effect is in the IR."""
    return {parameter.name for parameter in getattr(function, "params", ()) if parameter.is_constexpr}


def tuner_lines(tuner, configs):
    """Yields the configs of an autotuner, and what it does to arguments while it measures. Arguments are
    numbered, because the sides may name them differently; constants have names.
    """
    for config in configs:
        words = (f"{name} {_value(value)}" for name, value in config.all_kwargs().items())
        yield f"autotuner's config: {', '.join(words)}"
    keys = getattr(tuner, "keys", None)
    if keys is None:
        keys = [tuner.arg_names[number] for number in getattr(tuner, "key_idx", ())]
    lists = {"key": keys, **{name: getattr(tuner, name, None) for name in ("reset_to_zero", "restore_value")}}
    for name, arguments in lists.items():
        yield f"autotuner's {name}: {_json(_numbers(tuner, arguments or ()))}"


def measuring_lines(tuner, arguments):
    """Yields what an autotuner's hooks do to arguments around each measurement."""
    numbers = dict(zip(_names(tuner), itertools.count(1)))
    tensors = {
        name: storages.place_of(getattr(value, "base", value)).origin
        for name, value in arguments.items()
        if name in numbers and hasattr(getattr(value, "base", value), "data_ptr")
    }
    before = {origin: origin.state for origin in tensors.values()}
    for hook, words in (("pre_hook", {}), ("post_hook", {"exception": None})):
        if not getattr(tuner, f"user_defined_{hook}", False):
            continue
        try:
            getattr(tuner, hook)(arguments, **words)
        except Exception as error:
            reason = f"an autotuner's {hook} fails here ({type(error).__name__}): it was not compared"
            noted.caveat(reason, is_compared=False)
        for name, origin in tensors.items():
            if origin.state != before[origin]:
                fill = origin.state or "something"
                yield f"autotuner's {hook}: argument {numbers[name]} filled with {fill}"
        for origin, state in before.items():
            origin.state = state


def _numbers(tuner, arguments):
    names = _names(tuner)
    return [names.index(name) + 1 if name in names else str(name) for name in arguments]


def _names(tuner):
    constants = _constants(jit_function(tuner))
    return [name for name in tuner.arg_names if name not in constants]


def text(calls):
    """Writes equal consecutive calls once."""
    counted: list = []
    for lines in calls:
        if counted and counted[-1][1] == lines:
            counted[-1][0] += 1
        else:
            counted.append([1, lines])
    parts = []
    for number, (count, lines) in enumerate(counted, 1):
        parts += [f"call {number}" + (f", {count} times" if count > 1 else "")]
        parts += [f"  {line}" for line in lines]
    return "\n".join(parts) + "\n"


_DEFAULT = ", its default"
"""Marks a field of a descriptor with its default value: it is not compared if the other side's descriptors
lack it (`launch_texts`).
"""


def _fields(descriptor):
    yield "block shape", f"descriptor of {_json(list(map(int, descriptor.block_shape)))}"
    yield "shape", _json(list(map(int, descriptor.shape)))
    yield "strides", _json(list(map(int, descriptor.strides)))
    common_fields = {"base", "shape", "strides", "block_shape"}
    for field in dataclasses.fields(descriptor) if dataclasses.is_dataclass(descriptor) else ():
        if field.name not in common_fields:
            value = getattr(descriptor, field.name)
            yield f"field {field.name}", _value(value) + (_DEFAULT if value == field.default else "")


def _value(value):
    if is_temporary_file(value):
        return f"a file of SHA-256 {sha256_of_file(value)[:16]}"
    if hasattr(value, "item") and not hasattr(value, "fn") and not hasattr(value, "data_ptr"):
        value = value.item()  # a number of numpy's or torch's
    is_plain = isinstance(value, (bool, int, float, str)) or value is None
    text = _plain(value) if is_plain else text_of(value)
    return text.replace(os.path.join(os.getcwd(), ""), "").replace(TRITON_ROOT, "<triton>")


def _plain(value):
    """Prints a number or a string as Python does: a class of the program may print something else."""
    plain = next((each for each in (bool, int, float, str) if isinstance(value, each)), None)
    if plain is float and value != value and (bits := struct.pack(">d", value).hex()) != _NAN_BITS:
        return f"nan, bits {bits}"
    return repr(value) if plain is None else plain.__repr__(value)


def _json(value):
    return json.dumps(value, default=str)
