"""How often an operation, or a pattern of text, stands in the canonical text of a stage."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from irdiff import texts


@dataclass(frozen=True, kw_only=True)
class PatternCount:
    total: int = 0
    in_loops: int = 0
    """Those that a loop encloses."""

    def __add__(self, other: PatternCount) -> PatternCount:
        return PatternCount(total=self.total + other.total, in_loops=self.in_loops + other.in_loops)


@dataclass(frozen=True, kw_only=True)
class Pattern:
    words: str
    """An operation with all that it may go on with (`wgmma`: `wgmma.fence.sync.aligned`), or a glob."""
    expression: re.Pattern[str] | None = None
    """Counts in whole lines, in place of operations."""

    def count(self, stage: str, text: str) -> PatternCount:
        """Raises NormalizeError for a text that has no canonical form."""
        lines = list(texts.lines(stage, text))
        counts = [self._in_line(stage, line) for line in lines]
        if not any(counts):
            return PatternCount()
        depths = texts.ir_of(stage).depths(lines)
        in_loops = sum(count for count, depth in zip(counts, depths, strict=True) if depth)
        return PatternCount(total=sum(counts), in_loops=in_loops)

    def _in_line(self, stage: str, line: str) -> int:
        if self.expression is not None:
            return sum(1 for _ in self.expression.finditer(line))
        operation = texts.ir_of(stage).parse(line).operation
        is_part = operation == self.words or operation.startswith(f"{self.words}.")
        return int(is_part or fnmatchcase(operation, self.words))


def total(counts: Iterable[PatternCount]) -> PatternCount:
    return sum(counts, PatternCount())
