"""Describes a captured launch as JSON, with the fields of `irdiff.model.Launch`."""

from __future__ import annotations

import itertools
import os
import sys
from collections import Counter

import triton

from .. import corpus_api, texts
from ..texts import sha256, text_of

_MAX_NUMBER = 1e40
"""Larger numbers, infinities and NaN are written as text."""
TRITON_ROOT = os.path.dirname(os.path.abspath(triton.__file__))


def is_temporary_file(value):
    """Accepts the path of a file outside of the repository and of Triton: it changes with each process."""
    if not isinstance(value, str) or not os.path.isabs(value) or not os.path.isfile(value):
        return False
    own = (os.path.join(os.path.realpath(folder), "") for folder in (os.getcwd(), TRITON_ROOT))
    return not os.path.realpath(value).startswith(tuple(own))


def kernel_name(captured):
    return captured.src.name if captured.function is None else captured.function.fn.__name__


def describe(captured, launch_id, label, target, entry):
    return {
        **_facts_of(captured),
        "id": launch_id,
        "workload": launch_id.split(":", 1)[0],
        "label": label,
        "target": target["name"],
        "digest": captured.digest,
        "launched": captured.text,
        "places": captured.places,
        "options": _options(captured),
        "tier": entry.facts["tier"],
        "expected": entry.expects(target["name"], triton.__version__),
        "flops": entry.facts["flops"],
        "min_bytes": entry.facts["min_bytes"],
        "tolerance": None if entry.facts["rtol"] is None else [entry.facts["rtol"], entry.facts["atol"]],
    }


def _facts_of(captured):
    if hasattr(captured, "described"):  # it is recorded
        return captured.described
    return _described_file(captured.src) if captured.function is None else _described(captured)


def of_captured(captured):
    """Returns what a recording holds: nothing that depends on where the launch is replayed."""
    if captured.function is None:  # it is given as a file of IR, which is gone when the test has ended
        name = os.path.basename(captured.src.path)
        own = {**_described_file(captured.src), "source_path": name, "sources": [name]}
    else:
        own = _described(captured)
    return {**own, "options": _options(captured)}


def _described_file(src):
    nothing: dict = {"arguments": [], "constexprs": {}, "attributes": {}, "grid": None}
    path = str(src.path)
    digest = sha256(src.text)
    kernel_facts = {"kernel": src.name, "source_digest": digest, "source_path": path, "sources": [path]}
    return {**nothing, **kernel_facts, "signature": src.signature}


def _described(captured):
    src = captured.src
    constexprs = {name_of(src, key): text_of(value) for key, value in src.constants.items()}
    code = captured.function.fn.__code__
    path = code.co_filename
    return {
        "kernel": kernel_name(captured),
        "source_digest": sha256(texts.text_of_source(captured.function)),
        "source_path": _relative(path),
        "source_line": code.co_firstlineno + _lines_above_def(captured.function),
        "sources": sorted(
            map(_relative, captured.frontend_input.sources if captured.frontend_input else [path])
        ),
        "arguments": _arguments(captured, constexprs),
        "signature": {str(name): text_of(ty) for name, ty in src.signature.items()},
        "constexprs": constexprs,
        "attributes": attributes_of(src),
        "grid": captured.grid,
        "unseen": list(captured.unseen),
        "settings": captured.frontend_input.settings_digest if captured.frontend_input else "",
    }


def _lines_above_def(function):
    """Returns 0 if this Triton does not keep the source's lines."""
    lines = getattr(function, "raw_src", None) or ()
    return next((n for n, line in enumerate(lines) if line.lstrip().startswith("def ")), 0)


def tensors(values):
    """Includes tensors inside tuples and descriptors."""
    for value in values:
        if isinstance(value, (tuple, list)):
            yield from tensors(value)
            continue
        tensor = getattr(value, "base", value)
        if hasattr(tensor, "data_ptr") or hasattr(tensor, "storage"):
            yield tensor


def shape_of_first(values):
    """Names a launch by its first tensor, `fp16-512x4096`, so that a launch added before it does not rename
    it.
    """
    first = next(tensors(values), None)
    if first is None:
        return "scalars"
    return (
        f"{corpus_api.dtype_name(first.dtype)}-{'x'.join(map(str, corpus_api.shape_of(first))) or 'scalar'}"
    )


def numbered(names):
    all_of = Counter(names)
    next_of = {name: itertools.count(1) for name in all_of}
    return [f"{name}#{next(next_of[name])}" if all_of[name] > 1 else name for name in names]


def specialization_of(captured):
    """Returns the SHA-256 of the kernel's own text and specialization."""
    src = captured.src
    parts = [
        type(src).__name__,
        kernel_name(captured),
        texts.text_of_source(captured.function),
        sorted((str(name), text_of(ty)) for name, ty in src.signature.items()),
        sorted((str(key), text_of(value)) for key, value in src.constants.items()),
        sorted(attributes_of(src).items()),
        sorted(_options(captured).items()),
    ]
    return sha256(repr(parts))


def _arguments(captured, constexprs):
    arguments = []
    storages: dict = {}
    for name, value in captured.bound.items():
        argument = dict.fromkeys(("value", "dtype", "shape", "strides", "storage_offset", "alias", "fill"))
        argument.update(
            name=name, block_shape=None, type=text_of(captured.src.signature.get(name, "constexpr"))
        )
        tensor = value
        if hasattr(value, "block_shape") and hasattr(value, "base"):
            argument.update(kind="descriptor", block_shape=list(value.block_shape))
            tensor = value.base
        elif hasattr(value, "data_ptr"):
            argument["kind"] = "tensor"
        elif name in constexprs and argument["type"] == "constexpr":
            argument.update(kind="constexpr", value=_json_value(value))
        else:
            argument.update(kind="none" if value is None else "scalar", value=_json_value(value))
        if tensor is not value or argument["kind"] == "tensor":
            argument.update(_tensor_row(tensor, storages))
            if argument["kind"] == "descriptor":
                argument.update(shape=[int(n) for n in value.shape], strides=[int(n) for n in value.strides])
        arguments.append(argument)
    return arguments


def _tensor_row(tensor, storages):
    storage, offset, fill = corpus_api.storage_of(tensor)
    return {
        "dtype": corpus_api.dtype_name(tensor.dtype),
        "shape": list(corpus_api.shape_of(tensor)),
        "strides": list(corpus_api.strides_of(tensor)),
        "storage_offset": int(offset),
        "alias": storages.setdefault(storage, len(storages)),
        "fill": fill,
    }


def attributes_of(src):
    attrs = src.attrs
    if isinstance(attrs, dict):
        return {name_of(src, key): text_of(value) for key, value in attrs.items() if value}
    to_dict = getattr(attrs, "to_dict", None)  # 3.2: an AttrsDescriptor
    return {key: repr(value) for key, value in to_dict().items()} if to_dict else {"attrs": repr(attrs)}


def _options(captured):
    options = captured.options or {}
    return {key: text_of(value).replace(TRITON_ROOT, "<triton>") for key, value in sorted(options.items())}


def name_of(src, key):
    """Constants and attributes are keyed by name in 3.2, and by a path of indices since 3.3."""
    if isinstance(key, tuple):
        names = list(src.fn.arg_names)
        return ".".join([names[key[0]], *map(str, key[1:])])
    return str(key)


def _json_value(value):
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, (int, float)):
        return value if -_MAX_NUMBER <= value <= _MAX_NUMBER else repr(value)
    return text_of(value)


def _relative(path):
    for root in (os.getcwd(), TRITON_ROOT, sys.prefix):
        if path.startswith(root + os.sep):
            return path[len(root) + 1 :]
    return path
