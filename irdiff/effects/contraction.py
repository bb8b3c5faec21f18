"""Tells whether ptxas fused the same products and sums of two programs that compute the same. Pure.

ptxas may fuse a product and a sum into one `FFMA`, if neither names a rounding mode. No line of SASS says
which ones it fused, so this is concluded from numbers. Before this module is asked, `cases` has checked that
both machine codes have equally many `FADD`s, `FFMA`s and other operations that round.

The numbers decide only if

- no sum of the PTX is in a loop, and no two instructions compute the same sum;
- each sum that can be fused is of 32-bit floats and adds one product;
- no `FFMA` multiplies by 1, because such an `FFMA` is a plain sum.

The number of *missing* sums is the number of sums in the PTX minus the number of `FADD`s in SASS. The `FADD`s
alone decide nothing: ptxas makes some of its own, for example to take an absolute value (`FADD R1, |R0|,
-RZ`), and such an `FADD` may stand in for a missing sum. It also leaves out sums that nothing reads. So the
number of `FFMA`s must agree:

- All sums were fused if as many are missing as can be fused, and SASS has that many more `FFMA`s than the PTX
  has fused operations.
- No sum was fused if none is missing, and SASS has as many `FFMA`s as the PTX has fused operations.

If only one sum can be fused, and it is missing, the number of `FFMA`s need not agree: both sides have equally
many, and there is no other sum that one of them could have fused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from irdiff.effects.values import Values
from irdiff.ir.program import CodeBlock, Function, Program

_SUMS = ("add.", "sub.")
_FORMAT = ".f32"
_QUOTIENTS = "div.full", "div.approx", "rcp.approx.f32"


class Sums(NamedTuple):
    """The sums that both programs compute: not those of a fused operation of the assembly."""

    separate: int
    """Sums of 32-bit floats."""
    fusible: int
    """How many have a product that may be fused with them."""
    fused: float
    """Fused operations of the text itself, of 32-bit floats; infinite where one is in a loop."""
    is_certain: bool
    """True if each program computes each sum once, and each fusible one has one product and is of 32 bits."""


def sums(values: Values, programs: Sequence[Program]) -> Sums:
    own = [(key[0], key[1:]) for key in values.keys if _is_sum(str(key[0]))]
    fusible = [(name, count) for name, operands in own if (count := _products(values, name, operands))]
    separate = sum(name.endswith(_FORMAT) for name, _ in own)
    functions = [[*each.functions.values()] for each in programs]
    return Sums(
        separate=separate,
        fusible=len(fusible),
        fused=max(_count_once(each, _is_fused) for side in functions for each in side),
        is_certain=all(products == 1 and name.endswith(_FORMAT) for name, products in fusible)
        and all(sum(_count_once(each, _is_single_sum) for each in side) == separate for side in functions),
    )


def _is_sum(name: str) -> bool:
    return name.startswith(_SUMS)


def _is_single_sum(name: str) -> bool:
    return _is_sum(name) and name.endswith(_FORMAT)


def _is_fused(name: str) -> bool:
    return name.startswith(("fma.", "mad.")) and name.endswith(_FORMAT)


def _products(values: Values, name: str, operands: Sequence[object]) -> int:
    """How many operands may be fused with a sum."""
    return sum(_is_product(values, each) for each in operands if isinstance(each, int)) * _is_free(name)


def _count_once(function: Function, is_counted: Callable[[str], bool]) -> float:
    """How many such operations a function computes; more than any number where one is in a loop."""
    own = [
        (block, sum(is_counted(each.operation.name) for each in block.instructions))
        for block in function.blocks
    ]
    is_in_loop = any(count and _leads_back(function, block) for block, count in own)
    return float("inf") if is_in_loop else sum(count for _, count in own)


def _leads_back(function: Function, block: CodeBlock) -> bool:
    blocks = {each.label: each for each in function.blocks}
    waiting, seen = [*block.targets], set[str]()
    while waiting:
        label = waiting.pop()
        if label not in seen and label in blocks:
            seen.add(label)
            waiting += blocks[label].targets
    return block.label in seen


def _is_free(name: str) -> bool:
    """True if the name of an operation does not say how it rounds."""
    return ".r" not in name


def _is_product(values: Values, number: int) -> bool:
    """A quotient that is not exact ends in a product, as does a reciprocal that keeps small numbers.

    A sign is part of either.
    """
    name, *operands = values.keys[number]
    if not isinstance(name, str):
        return False
    if name.startswith("neg."):
        return _is_product(values, operands[0])
    return (name.startswith("mul.") and _is_free(name)) or name.startswith(_QUOTIENTS)


def is_same(own: Sums, operations: Counter[str]) -> bool:
    """operations: of the machine code of both programs, by name."""
    lacking = own.separate - operations["FADD"] - 2 * operations["FADD2"]
    fused = operations["FFMA"] + 2 * operations["FFMA2"]
    are_all_fused = lacking == own.fusible and (own.fusible == 1 or fused == own.fused + own.fusible)
    is_none_fused = lacking == 0 and fused == own.fused
    return own.is_certain and not operations["FFMA by 1"] and (are_all_fused or is_none_fused)
