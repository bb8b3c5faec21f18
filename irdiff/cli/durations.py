"""Times as users write them: `90s`, `10m`, `1.5h`, `2d`, or a plain number of seconds."""

from __future__ import annotations

from typing import Any

import click

from irdiff.errors import UsageError

_UNITS_S = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_MOST_S = 1e9


def seconds(text: str) -> float:
    """Raises UsageError."""
    unit = text[-1:].lower()
    number = text[:-1] if unit in _UNITS_S else text
    try:
        value = float(number) * _UNITS_S.get(unit, 1.0)
    except ValueError:
        value = 0.0
    if not 0 < value < _MOST_S:
        raise UsageError(f"{text!r} is not a time", hint="write it as 90s, 10m or 1h")
    return value


class Duration(click.ParamType):  # type: ignore[type-arg]
    """Seconds, from a text with a unit."""

    name = "time"

    def convert(self, value: Any, _: click.Parameter | None, __: click.Context | None) -> float:
        return value if isinstance(value, float) else seconds(str(value))
