"""JIT functions, and the autotuners and heuristics around them."""

from __future__ import annotations

import inspect

_WRAPPERS_AT_MOST = 8


def jit_function(value):
    """The JIT or constexpr function below autotuners and heuristics; None for anything else."""
    for _ in range(_WRAPPERS_AT_MOST):
        if hasattr(value, "fn") and hasattr(value, "src"):
            return value
        if not hasattr(value, "fn") or inspect.ismodule(value):
            return None
        value = value.fn
    return None


def text_of_source(function):
    """The source of a JIT function, in whatever attribute its release keeps it."""
    text = getattr(function, "src", None) or getattr(function, "raw_src", None) or ""
    return text if isinstance(text, str) else "".join(text)


def given_by_wrappers(value):
    """Names of the arguments and options that a kernel's autotuner and heuristics give it."""
    names = set()
    while value is not None and not hasattr(value, "src"):
        for config in getattr(value, "configs", ()):
            names.update(config.all_kwargs())
        names.update(getattr(value, "values", ()))
        value = getattr(value, "fn", None)
    return names
