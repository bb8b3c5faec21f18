"""What a workload launches, and how, as text: one line for each fact, so that a diff of two texts can be
read.

Only what the program gives is said, in words that every release of Triton has in common: values, shapes and
types of arguments, and the options that the call names. What a release makes of them is in its IR.
"""

from __future__ import annotations

import dataclasses
import json
import os

import triton

from . import corpus_api
from .describe import TRITON_ROOT, kernel_name
from .texts import code_of, jit_function, text_of

_ALIGNED_BYTES = 16
"""What Triton specializes a pointer on."""


class Calls:
    """The calls of one entry of LAUNCHES, described one after another."""

    def __init__(self):
        self._here: dict = {}
        self._first: dict = {}
        """{storage: the kernel that it was seen at first, and the key of that call}"""
        self._last: dict = {}
        """{(key, storage): the call, among those of one key, that had it last, and which argument of it}"""
        self._counts: dict = {}
        self._key: tuple = ()

    def lines(self, captured, key):
        """The facts of the next call; `key` is the same for calls of one specialization."""
        self._here, self._key = {}, key
        self._counts[key] = self._counts.get(key, 0) + 1
        rows = list(self._lines(captured))
        for storage, (_, name) in self._here.items():
            self._first.setdefault(storage, (kernel_name(captured), key))
            self._last[key, storage] = self._counts[key], name
        return rows

    def _lines(self, captured):
        yield f"grid: {_json(captured.grid)}"
        yield from _hooks(captured.function)
        yield from (f"option {name}: {_value(value)}" for name, value in sorted(captured.given.items()))
        constants = _constants(captured.function)
        given = (value for name, value in captured.bound.items() if name not in constants)
        for number, value in enumerate(given, 1):  # a kernel may name them differently
            yield from self._argument(kernel_name(captured), f"argument {number}", value)

    def _argument(self, kernel, name, value):
        if isinstance(value, (tuple, list)):
            for number, item in enumerate(value):
                yield from self._argument(kernel, f"{name}.{number}", item)
        elif hasattr(value, "block_shape") and hasattr(value, "base"):
            yield f"{name}: descriptor of block {_json(value.block_shape)}, {', '.join(_set_fields(value))}"
            yield f"{name}: {self._tensor(kernel, name, value.base)}"
        elif hasattr(value, "data_ptr"):
            yield f"{name}: {self._tensor(kernel, name, value)}"
        else:
            yield f"{name}: {_value(value)}"

    def _tensor(self, kernel, name, tensor):
        storage, offset, fill = corpus_api.storage_of(tensor)
        address = tensor.data_ptr()
        aligned = min(address & -address or _ALIGNED_BYTES, _ALIGNED_BYTES)
        number, _ = self._here.setdefault(storage, (len(self._here), name))
        words = [
            f"{corpus_api.dtype_name(tensor.dtype)} {_json(corpus_api.shape_of(tensor))}",
            f"strides {_json(corpus_api.strides_of(tensor))}",
            f"offset {int(offset)}",
            f"aligned to {aligned} bytes",
            f"storage {number}",
        ]
        words += [f"filled with {fill}"] if fill != "normal" else []
        first_kernel, key = self._first.get(storage, (kernel, None))
        if first_kernel != kernel:
            call, first_name = self._last[key, storage]
            since = self._counts[key] - call
            which = f"'s call {since} before its last" if since else ""
            words.append(f"was {first_name} of an earlier kernel{which}")
        if last := self._last.get((self._key, storage)):
            call, last_name = last
            distance = self._counts[self._key] - call
            words += [f"was {last_name} of {'the call' if distance == 1 else f'{distance} calls'} before"]
        return ", ".join(words)


def _constants(function):
    """Names of a kernel's constants: no launch passes them, and what they do is in the IR."""
    return {row.name for row in getattr(function, "params", ()) if row.is_constexpr}


def _hooks(function):
    """Functions of the host that run with each launch, those of the kernel and those of all kernels."""
    runtime = getattr(getattr(triton, "knobs", None), "runtime", None)
    for name in ("launch_enter_hook", "launch_exit_hook"):
        hook = getattr(runtime, name, None)
        for row in getattr(hook, "calls", [hook] if hook else []):
            yield f"{name}: {code_of(row)}"
    yield from (f"hook before it: {code_of(row)}" for row in getattr(function, "pre_run_hooks", ()))


def tuner_lines(tuner, configs, config):
    """What an autotuner chooses from, and what it does around the launch of one of these configs.

    Arguments go by their numbers, since a kernel may name them differently; constants go by their names.
    """
    for row in configs:
        words = (f"{name} {_value(value)}" for name, value in row.all_kwargs().items())
        yield f"autotuner's config: {', '.join(words)}"
    keys = getattr(tuner, "keys", None)
    if keys is None:
        keys = [tuner.arg_names[number] for number in getattr(tuner, "key_idx", ())]
    rows = {"key": keys, **{name: getattr(tuner, name, None) for name in ("reset_to_zero", "restore_value")}}
    for name, arguments in rows.items():
        yield f"autotuner's {name}: {_json(_numbers(tuner, arguments or ()))}"
    for name in ("pre_hook", "post_hook"):
        if getattr(tuner, f"user_defined_{name}", False):
            yield f"autotuner's {name}: {code_of(getattr(tuner, name))}"
    if config.pre_hook is not None:
        yield f"config's hook: {code_of(config.pre_hook)}"


def _numbers(tuner, arguments):
    constants = _constants(jit_function(tuner))
    known = [name for name in tuner.arg_names if name not in constants]
    return [known.index(name) + 1 if name in known else str(name) for name in arguments]


def text(calls):
    """The text of one case from the lines of each of its calls, in order; equal calls are said once."""
    rows: list = []
    for lines in calls:
        if rows and rows[-1][1] == lines:
            rows[-1][0] += 1
        else:
            rows.append([1, lines])
    parts = []
    for number, (count, lines) in enumerate(rows, 1):
        parts += [f"call {number}" + (f", {count} times" if count > 1 else "")]
        parts += [f"  {line}" for line in lines]
    return "\n".join(parts) + "\n"


def _set_fields(descriptor):
    """The shape and strides of a descriptor, and every other field that does not have its default."""
    yield f"shape {_json(list(map(int, descriptor.shape)))}"
    yield f"strides {_json(list(map(int, descriptor.strides)))}"
    known = {"base", "shape", "strides", "block_shape"}
    for field in dataclasses.fields(descriptor) if dataclasses.is_dataclass(descriptor) else ():
        value = getattr(descriptor, field.name)
        if field.name not in known and value != field.default:
            yield f"{field.name} {_value(value)}"


def _value(value):
    if hasattr(value, "item") and not hasattr(value, "fn") and not hasattr(value, "data_ptr"):
        value = value.item()  # a number of numpy's or torch's
    is_plain = isinstance(value, (bool, int, float, str)) or value is None
    text = repr(value) if is_plain else text_of(value)
    return text.replace(os.path.join(os.getcwd(), ""), "").replace(TRITON_ROOT, "<triton>")


def _json(value):
    return json.dumps(value, default=str)
