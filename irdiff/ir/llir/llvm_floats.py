"""One spelling for each floating-point constant of LLVM IR, by value.

LLVM up to 22 prints a constant in decimal where six digits are exact, else in hexadecimal (`0x…` the bits
of a double even for float, `0xH…` half, `0xR…` bfloat). Later versions print `f0x…` with the bits of the
type itself, `+inf`, `-inf`, `+qnan`, `+nan(0x3F)` and `+snan(0x1)` (a quiet and a signalling NaN with the
bits below the quiet one), and any decimal (with an exponent) that rounds to the value *in the type*. All
of these become the hexadecimal spelling that LLVM up to 22 reads: the bits of a double for float and
double, `0xH…`, `0xR…`. The type is the nearest one before the constant on its line; without a type, or with
a spelling not listed here (x86_fp80), the constant stays as it is.
Source: LLVM Language Reference, "Simple Constants"; LLVM's AsmWriter.cpp, writeAPFloatInternal; for NaN
its test of the parser, which gives the bits of `+nan`, `-qnan` and `+snan`.
"""

from __future__ import annotations

import functools
import re
import struct

_CONSTANT = re.compile(
    r"(?<![\w.%@$#!-])(?:f?0x[HR]?[0-9A-Fa-f]++|[+-]?\d+\.\d+(?:[eE][+-]?\d+)?|[+-](?:inf|qnan|s?nan\(0x[0-9A-Fa-f]++\)))(?![\w.])"
)
_TYPE = re.compile(r"(?<![\w.$%@!#-])(?:half|bfloat|float|double|x86_fp80|fp128|ppc_fp128)(?![\w.$-])")
"""A type, and not a name such as `%half`."""
_DIGITS = {"half": 4, "bfloat": 4, "float": 8, "double": 16}
"""Hexadecimal digits of a value."""
_FRACTION_BITS = {"half": 10, "bfloat": 7, "float": 23, "double": 52}
_STRUCT = {"half": ">e", "float": ">f", "double": ">d"}
_SPECIAL = re.compile(r"([+-])(inf|qnan|s?nan)(?:\(0x([0-9A-Fa-f]+)\))?")
_MARKS = ("0x", "e+", "e-", "inf", "nan")
"""Each constant that has another spelling contains one."""


def spell_floats(text: str) -> str:
    """Rewrite the constants line by line. Strings must be hidden."""
    parts: list[str] = []
    position = 0
    for start in sorted(_marked_lines(text)):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        parts += (text[position:start], _spell_line(text[start:end]))
        position = end
    return "".join([*parts, text[position:]])


def _marked_lines(text: str) -> set[int]:
    """Where each line begins that has a mark."""
    starts = set()
    for mark in _MARKS:
        position = text.find(mark)
        while position >= 0:
            starts.add(text.rfind("\n", 0, position) + 1)
            end = text.find("\n", position)
            position = text.find(mark, end) if end >= 0 else -1
    return starts


def _spell_line(line: str) -> str:
    parts: list[str] = []
    position = 0
    kind = ""
    for match in _CONSTANT.finditer(line):
        between = line[position : match.start()]
        types = _TYPE.findall(between)
        kind = types[-1] if types else kind
        constant = match.group()
        parts += (between, spell(constant, kind))
        position = match.end()
    parts.append(line[position:])
    return "".join(parts)


@functools.lru_cache(maxsize=1 << 14)
def spell(constant: str, kind: str) -> str:
    """The one spelling of a constant of the type `kind`."""
    if kind not in _DIGITS:
        return constant
    if constant.startswith("0x"):
        return constant.upper().replace("0X", "0x")
    bits = _bits(constant, kind)
    return constant if bits is None else _from_bits(bits, kind)


def _bits(constant: str, kind: str) -> int | None:
    """None for a constant that the type cannot hold as it is written."""
    if constant.startswith("f0x"):
        digits = constant[3:]
        return int(digits, 16) if len(digits) == _DIGITS[kind] else None
    if special := _SPECIAL.fullmatch(constant):
        return _special_bits(special, kind)
    try:
        return _value_bits(float(constant), kind)
    except (OverflowError, ValueError):
        return None


def _special_bits(special: re.Match[str], kind: str) -> int | None:
    """None for a payload that the type has no place for, or a signalling NaN that would be infinity."""
    sign, name, digits = special.groups()
    width, fraction = 4 * _DIGITS[kind], _FRACTION_BITS[kind]
    payload, quiet = int(digits or "0", 16), 1 << fraction - 1
    if payload >= quiet or (name == "snan" and not payload):
        return None
    exponent = (1 << width - 1 - fraction) - 1
    return (
        (sign == "-") << width - 1
        | exponent << fraction
        | (quiet if name in ("qnan", "nan") else 0)
        | payload
    )


def _value_bits(value: float, kind: str) -> int:
    """Nearest, ties to even; for bfloat in one step from the double (through float it could round twice)."""
    if kind != "bfloat":
        return int.from_bytes(struct.pack(_STRUCT[kind], value))
    above = int.from_bytes(struct.pack(">f", value)) >> 16

    def distance(bits: int) -> tuple[float, int]:
        return abs(struct.unpack(">f", (bits << 16).to_bytes(4))[0] - value), bits & 1

    return min(above, above + 1, key=distance)


def _from_bits(bits: int, kind: str) -> str:
    if kind in ("half", "bfloat"):
        return f"0x{'H' if kind == 'half' else 'R'}{bits:04X}"
    if kind == "float":
        if bits >> 23 & 0xFF == 0xFF:  # infinity, or NaN whose payload must survive
            bits = (bits >> 31) << 63 | 0x7FF << 52 | (bits & 0x7FFFFF) << 29
        else:
            (single,) = struct.unpack(">f", bits.to_bytes(4))
            bits = int.from_bytes(struct.pack(">d", single))
    return f"0x{bits:016X}"
