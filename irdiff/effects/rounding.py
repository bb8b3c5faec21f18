"""Names the kind of rounding in which two values differ that are near in every sample. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection
from typing import NamedTuple

from irdiff.effects.nodes import operands_of
from irdiff.effects.values import Values
from irdiff.ir.llir.opcodes import INTRINSIC_PREFIXES
from irdiff.model import RoundingKind

_FLAGS = frozenset(
    {"ftz", "approx", "full", "contract", "fast", "reassoc", "arcp", "afn", "nsz", "nnan", "ninf"}
)
_EXACTNESS = _FLAGS | {"rn", "rz", "rm", "rp", "rna", "rtz", "rne", "pkrtz", "e32", "e64"}
_SPECIAL = frozenset(
    {"max", "min", "maxnum", "minnum", "maximum", "minimum", "abs", "copysign", "neg", "canonicalize"}
)
_SPECIAL_FLAGS = frozenset({"NaN", "xorsign", "abs"})
_FUSED = frozenset({"fma", "fmac", "mad", "fmuladd"})
_PARTS = frozenset({"mul", "add", "sub", "fmul", "fadd", "fsub", "mul_legacy"})
_TOKEN = re.compile(r"[._ ]")
_PREFIXES = frozenset({"v", "pk", *INTRINSIC_PREFIXES})
_MAX_NODES = 4_000


class _Cone(NamedTuple):
    """The floating-point operations of one side that the other does not have."""

    words: Counter[str]
    flags: Counter[str]
    names: tuple[str, ...]
    constants: Counter[str]


def has_floats(values: Values, *numbers: int, depth: int = 5) -> bool:
    """True if a floating-point operation computes one of the values, or is near below.

    depth: how many operations may lie between.
    """
    waiting = [(number, depth) for number in numbers]
    while waiting:
        number, left = waiting.pop()
        made = values.made_by.get(number)
        if made and made.is_float:
            return True
        if left:
            waiting += [(each, left - 1) for each in operands_of(values.keys[number])]
    return False


def kind_of(values: Values, shared: Collection[int], base: int, head: int) -> tuple[RoundingKind, str, str]:
    """With the operations of both sides in words."""
    ours, theirs = _cone(values, shared, base), _cone(values, shared, head)
    names = (Counter(side.names) for side in (ours, theirs))
    mine, its = names
    words = [_words(only) or _words(whole) for only, whole in ((mine - its, mine), (its - mine, its))]
    return _kind(ours, theirs), words[0], words[1]


def _kind(ours: _Cone, theirs: _Cone) -> RoundingKind:
    less, more = ours.words - theirs.words, theirs.words - ours.words
    fused = {bool(_FUSED & side.keys()) for side in (less, more)}
    if len(fused) == 2 and {*less, *more} & _PARTS:
        return RoundingKind.CONTRACTION
    if not less and not more:
        if ours.flags == theirs.flags:
            is_order = ours.constants == theirs.constants
            return RoundingKind.REDUCTION_ORDER if is_order else RoundingKind.PRECISION
        differing = {*(ours.flags - theirs.flags), *(theirs.flags - ours.flags)}
        if differing & _SPECIAL_FLAGS:
            return RoundingKind.SPECIAL_VALUES
        return RoundingKind.FAST_MATH if differing & _FLAGS else RoundingKind.PRECISION
    if {*less, *more} <= _SPECIAL:
        return RoundingKind.SPECIAL_VALUES
    return RoundingKind.PRECISION


def differ_in_flags(one: str, other: str) -> bool:
    """True if two operations are one, under other flags of how exact it is."""
    names = [[each for each in _TOKEN.split(name) if each not in _EXACTNESS] for name in (one, other)]
    return names[0] == names[1] and one != other


def _words(names: Counter[str]) -> str:
    shown = [f"{name} ({count}×)" if count > 1 else name for name, count in names.most_common(3)]
    return ", ".join([*shown, *(["…"] if len(names) > len(shown) else [])])


def _cone(values: Values, shared: Collection[int], number: int) -> _Cone:
    words, flags, names, constants = Counter[str](), Counter[str](), list[str](), Counter[str]()
    waiting, seen = [number], set[int]()
    while waiting and len(seen) < _MAX_NODES:
        now = waiting.pop()
        if now in seen or (now in shared and now != number):
            continue
        seen.add(now)
        made = values.made_by.get(now)
        if made and made.is_float and not made.effect:
            tokens = [each for each in _TOKEN.split(made.word) if each and each not in _PREFIXES]
            words[tokens[0]] += 1
            flags.update(tokens[1:])
            names.append(made.word)
            operands = (values.keys[each] for each in operands_of(values.keys[now]))
            constants.update(str(key[1]) for key in operands if key[0] in ("const", "text"))
        waiting += operands_of(values.keys[now])
    return _Cone(words, flags, tuple(names), constants)
