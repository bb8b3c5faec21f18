"""Values as text that is the same in every process."""

from __future__ import annotations

import hashlib
import inspect
import re

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def text_of(value):
    """Without addresses."""
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
