"""Whether an assembler fused the same products and sums of two programs that compute the same. Pure.

It may make one fused operation of a product and a sum that do not say how they round. Where no sum is in a
loop and each is computed once, it fused as many sums as the machine code lacks. If these are all that it may
fuse, or none, then both programs have the same ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from irdiff.effects.values import Values
from irdiff.ir.program import CodeBlock, Function, Program

_SUMS = ("add.", "sub.")
_FORMAT = ".f32"


class Sums(NamedTuple):
    """The sums that both programs compute: not those of a fused operation of the assembly."""

    separate: int
    """Of 32-bit floats."""
    fusible: int
    """How many have a product that may be fused with them."""
    is_certain: bool
    """Whether each program computes each of them once, and each has one product and is of 32 bits."""


def sums(values: Values, programs: Sequence[Program]) -> Sums:
    own = [(key[0], key[1:]) for key in values.keys if _is_sum(str(key[0]))]
    fusible = [(name, count) for name, operands in own if (count := _products(values, name, operands))]
    separate = sum(name.endswith(_FORMAT) for name, _ in own)
    functions = [[*each.functions.values()] for each in programs]
    return Sums(
        separate=separate,
        fusible=len(fusible),
        is_certain=all(products == 1 and name.endswith(_FORMAT) for name, products in fusible)
        and all(sum(map(_sums_once, side)) == separate for side in functions),
    )


def _is_sum(name: str) -> bool:
    return name.startswith(_SUMS)


def _products(values: Values, name: str, operands: Sequence[object]) -> int:
    """How many operands may be fused with a sum."""
    return sum(_is_product(values, each) for each in operands if isinstance(each, int)) * _is_free(name)


def _sums_once(function: Function) -> float:
    """How many sums a function computes; more than any number where one is in a loop."""
    own = [(block, _sums_of(block)) for block in function.blocks]
    is_in_loop = any(count and _leads_back(function, block) for block, count in own)
    return float("inf") if is_in_loop else sum(count for _, count in own)


def _sums_of(block: CodeBlock) -> int:
    names = (each.operation.name for each in block.instructions)
    return sum(_is_sum(name) and name.endswith(_FORMAT) for name in names)


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
    """Whether an operation does not say how it rounds."""
    return ".r" not in name


def _is_product(values: Values, number: int) -> bool:
    """A quotient that is not exact ends in a product, and a sign is part of either."""
    name, *operands = values.keys[number]
    if not isinstance(name, str):
        return False
    if name.startswith("neg."):
        return _is_product(values, operands[0])
    return (name.startswith("mul.") and _is_free(name)) or name.startswith(("div.full", "div.approx"))


def is_same(own: Sums, operations: Counter[str]) -> bool:
    """operations: of the machine code of both programs, by name."""
    fused = own.separate - operations["FADD"]
    return own.is_certain and not operations["FFMA by 1"] and fused in (0, own.fusible)
