"""Writes names of files that are no UTF-8 as text, so that everybody can read a run.

Linux and git take any bytes for a name. Python puts a lone surrogate in the place of each byte that it cannot
decode, and no JSON has these.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from functools import partial
from typing import Any

from pydantic_core import PydanticSerializationError

from irdiff.adapters import adapter
from irdiff.model import Run

_SURROGATE = re.compile("[\ud800-\udfff]")
_BYTES = range(0xDC80, 0xDD00)
"""Surrogates that stand for a byte."""


def readable(run: Run) -> Run:
    r"""Returns the run with `x\xff.py` for a name with the byte 255; or the run itself."""
    try:
        adapter(Run).dump_json(run)  # ten times as fast as to look at each text
    except PydanticSerializationError:
        new_keys = {key: _readable(launch, {}).key for key, launch in run.launches.items()}
        readable_run: Run = _readable(run, new_keys)
        return readable_run
    return run


def _readable(value: Any, new_keys: Mapping[str, str]) -> Any:
    """new_keys: the digests of launches whose text changes, by the old ones."""
    if isinstance(value, str):
        return new_keys.get(value, value) if value.isascii() else _SURROGATE.sub(_escaped, value)
    inner = partial(_readable, new_keys=new_keys)
    if isinstance(value, Mapping):
        return {inner(name): inner(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        entries = map(inner, value)
        return type(value)(*entries) if hasattr(value, "_fields") else type(value)(entries)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [each.name for each in dataclasses.fields(value)]
        return dataclasses.replace(value, **{name: inner(getattr(value, name)) for name in names})
    return value


def _escaped(surrogate: re.Match[str]) -> str:
    code = ord(surrogate[0])
    return f"\\x{code & 0xFF:02x}" if code in _BYTES else f"\\u{code:04x}"
