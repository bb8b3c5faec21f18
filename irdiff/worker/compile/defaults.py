"""Lists what a release lets users set: its knobs, and the options of a launch, with their defaults."""

from __future__ import annotations

import dataclasses

from .settings import NEUTRAL_KNOBS, groups

_EXAMPLES = (("cuda", 90, 32), ("hip", "gfx942", 64))
"""Defaults of a release may depend on the target."""
_KINDS = {"env_bool": "bool", "env_opt_bool": "bool", "env_int": "int"}


def knobs():
    """Returns {variable: [its kind, its value now]} of the knobs that compilations read; none before Triton
    3.4.
    """
    knobs_by_variable = {}
    for name, group in groups().items():
        if name not in NEUTRAL_KNOBS:
            for knob, descriptor in group.knob_descriptors.items():
                try:
                    value = getattr(group, knob)
                except Exception as error:  # the value that is set is no value for it
                    value = error
                kind = _KINDS.get(type(descriptor).__name__, "text")
                knobs_by_variable[descriptor.key] = [
                    kind,
                    value if isinstance(value, (bool, int, str)) else None,
                ]
    return knobs_by_variable


def options(backends):
    """Returns {backend: {option of a launch: [its kind, its default]}}."""
    by_backend = {name: options_of(backend.compiler) for name, backend in backends.items()}
    for name, backend in backends.items():
        if not by_backend[name]:
            continue
        from triton.backends.compiler import GPUTarget

        examples = (GPUTarget(*words) for words in _EXAMPLES)
        example = next(filter(backend.compiler.supports_target, examples), None)
        if example is not None:
            parsed = vars(backend.compiler(example).parse_options({}))
            for option, kind_and_default in by_backend[name].items():
                kind_and_default[1] = _plain(parsed.get(option))
    return by_backend


def options_of(compiler):
    """Returns {option of a launch: [its kind, its default]}."""
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
