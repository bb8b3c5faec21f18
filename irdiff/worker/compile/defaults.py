"""What a release lets users set: its knobs, the options of a launch, and what both are where nobody sets
them.
"""

from __future__ import annotations

import dataclasses

from .settings import NEUTRAL_KNOBS, groups

_EXAMPLES = (("cuda", 90, 32), ("hip", "gfx942", 64))
"""A release's defaults may depend on more than its target; these two stand for their backends."""
_KINDS = {"env_bool": "bool", "env_opt_bool": "bool", "env_int": "int"}


def knobs():
    """{variable: [its kind, its value now]} of the knobs that compilations read; none before Triton 3.4."""
    found = {}
    for name, group in groups().items():
        if name not in NEUTRAL_KNOBS:
            for knob, descriptor in group.knob_descriptors.items():
                try:
                    value = getattr(group, knob)
                except Exception as error:  # the value that is set is no value for it
                    value = error
                kind = _KINDS.get(type(descriptor).__name__, "text")
                found[descriptor.key] = [kind, value if isinstance(value, (bool, int, str)) else None]
    return found


def options(backends):
    """{backend: {option of a launch: [its kind, what it is where nobody sets it]}}."""
    found = {name: options_of(backend.compiler) for name, backend in backends.items()}
    for name, backend in backends.items():
        if not found[name]:
            continue
        from triton.backends.compiler import GPUTarget

        examples = (GPUTarget(*words) for words in _EXAMPLES)
        example = next(filter(backend.compiler.supports_target, examples), None)
        if example is not None:
            parsed = vars(backend.compiler(example).parse_options({}))
            for option, row in found[name].items():
                row[1] = _plain(parsed.get(option))
    return found


def options_of(compiler):
    """{option of a launch: [its kind, its default]} of a backend's compiler."""
    parse = getattr(compiler, "parse_options", None)
    for value in list(getattr(parse, "__globals__", {}).values()):
        if isinstance(value, type) and dataclasses.is_dataclass(value) and hasattr(value, "num_warps"):
            return {field.name: _kind_and_default(field) for field in dataclasses.fields(value)}
    return {}


def _kind_and_default(field):
    default = field.default
    kind = type(default).__name__ if isinstance(default, (bool, int, float)) else "text"
    if "int" in str(field.type) and kind == "text":
        kind = "int"
    return [kind, _plain(default)]


def _plain(value):
    return value if isinstance(value, (bool, int, float, str)) else None
