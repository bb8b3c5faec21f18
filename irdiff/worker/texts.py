"""Values as text that is the same in every process."""

from __future__ import annotations

import hashlib
import inspect
import re

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def text_of(value):
    """Leaves out addresses."""
    if hasattr(value, "fn") and hasattr(value, "arg_names"):
        return f"jit:{value.fn.__module__.rsplit('.', 1)[-1]}.{value.fn.__qualname__}"
    if inspect.isfunction(value):
        return f"function:{value.__qualname__}"
    if type(value).__name__ == "constexpr":
        return text_of(value.value)
    if isinstance(value, (tuple, list)):
        return "(" + ", ".join(map(text_of, value)) + ")"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {text_of(v)}" for k, v in value.items()) + "}"
    return value if isinstance(value, str) else _ADDRESS.sub("", repr(value))


def sha256(text):
    return hashlib.sha256(text if isinstance(text, bytes) else text.encode()).hexdigest()


def sha256_of_file(path):
    with open(path, "rb") as file:
        return sha256(file.read())


# JIT functions, and the autotuners and heuristics around them


_WRAPPERS_AT_MOST = 8


def jit_function(value):
    """Returns the JIT or constexpr function below autotuners and heuristics; None for anything else."""
    for _ in range(_WRAPPERS_AT_MOST):
        if hasattr(value, "fn") and hasattr(value, "src"):
            return value
        if not hasattr(value, "fn") or inspect.ismodule(value):
            return None
        value = value.fn
    return None


def text_of_source(function):
    """Reads whatever attribute its release uses."""
    text = getattr(function, "src", None) or getattr(function, "raw_src", None) or ""
    return text if isinstance(text, str) else "".join(text)


def names_set_by_wrappers(value):
    names = set()
    while value is not None and not hasattr(value, "src"):
        for config in getattr(value, "configs", ()):
            names.update(config.all_kwargs())
        names.update(getattr(value, "values", ()))
        value = getattr(value, "fn", None)
    return names
