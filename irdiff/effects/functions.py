"""The functions that a `program_reader` names, as operations of the table of values. Pure."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

from irdiff.effects.nodes import ones
from irdiff.effects.values import Values
from irdiff.ir.program import PIECES


def compute(values: Values, name: str, width: int, operands: tuple[int, ...]) -> int:
    return values.normal(_FUNCTIONS[name](values, width, *operands))


def _ext(sign: str) -> Callable[..., int]:
    return lambda values, widths, value: values.extend(sign, widths, value)


_FUNCTIONS: Mapping[str, Callable[..., int]] = {
    "copy": lambda _values, _width, value: value,
    "add": Values.add,
    "sub": lambda values, width, left, right: values.add(width, left, right, -1),
    "neg": lambda values, width, value: values.scaled(width, value, -1),
    "mul": Values.mul,
    "mad": lambda values, width, one, other, added: values.add(width, values.mul(width, one, other), added),
    "not": lambda values, width, value: (
        values.invert(value) if width == 1 else values.invert_all(width, value)
    ),
    "zext": _ext("z"),
    "sext": _ext("s"),
    "trunc": Values.trunc,
    "low": Values.low,
    "select": Values.chosen_of,
    "pack": lambda values, width, *parts: values.pack(*parts, width=width),
    "part": lambda values, place, value: values.part(value, place),
    "half": lambda values, place, value: values.half(value, place),
    "piece": lambda values, code, value: values.part(value, *divmod(code, PIECES)),
    "field": Values.field,
    "sfield": functools.partial(Values.field, sign="s"),
    "mask": lambda values, _, truth, lanes: values.node("mask", truth, lanes),
    "descriptor": Values.descriptor,
    "put": lambda values, place, value, part: values.node("put", value, place, part),
    **{
        name: lambda values, width, value, places, name=name: values.shift(name, width, value, places)
        for name in ("shl", "shr", "sar")
    },
    **{
        name: lambda values, width, left, right, name=name: values.bitwise(name, width, left, right)
        for name in ("and", "or", "xor")
    },
    **{
        f"wide {sign}": lambda values, width, *parts, sign=sign: values.widening(sign, width, *parts)
        for sign in "sz"
    },
    **{
        kind: lambda values, width, one, other, kind=kind: values.extreme(kind, width, one, other)
        for kind in ("smin", "smax", "umin", "umax")
    },
    "mul24": lambda values, width, left, right: values.mul(
        width, *(values.masked(width, each, ones(24)) for each in (left, right))
    ),
    "reversed": Values.in_reverse,
    **{
        f"high {sign}": lambda values, width, left, right, sign=sign: values.high(sign, width, left, right)
        for sign in "su"
    },
    **{
        kind: lambda values, width, left, right, kind=kind: values.compare(kind, width, left, right)
        for kind in ("eq", "ne", *(sign + order for sign in "su" for order in ("lt", "le", "gt", "ge")))
    },
}
