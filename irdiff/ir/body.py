"""Builds the blocks of a function while its text is read line by line. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from irdiff.ir.program import COPY, CodeBlock, Instruction, Operand, ReadError, instruction

JUMP = "jump"
BRANCH = "branch"


class Body:
    """The blocks of a function while it is read line by line."""

    def __init__(self, scope: str = "") -> None:
        self.blocks: list[CodeBlock] = []
        self.now: list[Instruction] = []
        """The instructions of the block that is read."""
        self.line = 0
        """The line that is read, from 1."""
        self.label = "entry"
        """The label of the block that is read."""
        self._scope = scope

    def add(self, instructions: Iterable[Instruction]) -> None:
        self.now += [each.at(self.line) for each in instructions]

    def end(self, exit_: str, condition: Operand | None, targets: tuple[str, ...], label: str) -> None:
        """Ends the block; another begins under this label."""
        self.blocks.append(CodeBlock(self.label, tuple(self.now), exit_, condition, targets, self.line))
        self.now, self.label = [], label

    def leave(self, exit_: str, condition: Operand | None, target: str, is_negated: bool) -> None:
        """To a target, or out of the function; under a condition, or not where that is negated."""
        after, ending = (f"{self._scope}{word} {len(self.blocks)}" for word in ("after", "end"))
        if condition is not None:
            target = target if exit_ == JUMP else ending
            targets = (after, target) if is_negated else (target, after)
            self.end(BRANCH, condition, targets, after if exit_ == JUMP else ending)
        if condition is None or exit_ != JUMP:
            self.end(exit_, None, (target,) if exit_ == JUMP else (), after)


Phis = dict[str, list[tuple[str, dict[str, Operand]]]]
"""By block: the register of each phi node, and what it takes from each block that leads there."""


def with_copies(blocks: Sequence[CodeBlock], phis: Phis) -> Iterator[CodeBlock]:
    """Phi nodes as copies in a block of their own on each edge."""
    for block in blocks:
        targets, edges = [], list[CodeBlock]()
        for target in block.targets:
            phis_of_target = phis.get(target)
            if not phis_of_target:
                targets.append(target)
                continue
            if any(block.label not in incoming for _, incoming in phis_of_target):
                raise ReadError(f"a phi node without {block.label}")
            values = tuple(incoming[block.label] for _, incoming in phis_of_target)
            copies = instruction("copies", tuple(name for name, _ in phis_of_target), values, COPY)
            targets.append(f"{block.label} to {target} {len(edges)}")
            edges.append(CodeBlock(targets[-1], (copies,), JUMP, None, (target,)))
        yield block._replace(targets=tuple(targets))
        yield from edges
