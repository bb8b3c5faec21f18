"""The lines that show a difference, and their names. Pure.

If only one side has an effect, the witness shows for the other side the nearest earlier line that both sides
have. If the lines of an effect are equal on both sides, and a value that it uses differs, the witness also
shows where the sides begin to compute other values.
"""

from __future__ import annotations

import functools
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence

from irdiff.effects.numbering import Event, NumberedFunction
from irdiff.ir.program import Act, Early, Instruction, Operation
from irdiff.model import CodeLine, Harmless, Hazard, HazardKind, NotShown, Sides, Witness
from irdiff.words import counted

_MODIFIERS = re.compile(
    r"(cp\.async(?:\.bulk)?\.(?:wait|commit)_group|cp\.async\.bulk|cp\.async|tcgen05\.\w+|wgmma\.\w+|mbarrier\.\w+).*"
)
_MAX_CODE = 60
_MAX_LINE = 240


def code(each: Operation) -> str:
    name = each.word.removeprefix("llvm.").replace("`", "'")
    return f"`{name if len(name) <= _MAX_CODE else name[: _MAX_CODE - 1] + '…'}`"


def noun(event: Event) -> str:
    """`global store`; an instruction without a space by its name, without modifiers of PTX."""
    effect = event.effect
    if effect.space and effect.act in (Act.LOAD, Act.STORE, Act.ATOMIC):
        return f"{effect.space} {effect.act}"
    name = event.operation.word.removeprefix("llvm.")
    short = _MODIFIERS.match(name)
    return f"`{short[1] if short else name[:_MAX_CODE]}`"


class Witnesses:
    """Shows the lines of two functions, in the canonical texts that they were read from."""

    def __init__(self, base: NumberedFunction, head: NumberedFunction, texts: Sides[Sequence[str]]) -> None:
        self._sides = base, head
        self._texts = texts
        self._lines = [
            {event.number: event.line for block in side.blocks for event in block.events}
            for side in self._sides
        ]

    def _witness(self, base: Iterable[int], head: Iterable[int]) -> Witness:
        return Witness(
            base=_shown(self._texts.base, base),
            head=_shown(self._texts.head, head),
        )

    def of(self, one: Event, other: Event) -> Witness:
        return self._witness([one.line], [other.line])

    def of_values(self, base: int, head: int) -> Witness:
        return self._witness([self._line(0, base)], [self._line(1, head)])

    def _line(self, side: int, value: int) -> int:
        """Where a value is computed, or the effect is that gives it; 0 where neither is known."""
        values = self._sides[side].values
        if values.keys[value][0] == "part" and values.keys[value][1] in self._lines[side]:
            value = values.keys[value][1]
        return self._sides[side].lines.get(value) or self._lines[side].get(value, 0)

    def of_facet(self, events: tuple[Event, Event] | None, base: int, head: int) -> Witness:
        lines = [[self._line(side, each)] for side, each in enumerate((base, head))]
        if events:
            lines = [[*own, event.line] for own, event in zip(lines, events, strict=True)]
        shown = self._witness(*lines)
        if [each.text for each in shown.base] != [each.text for each in shown.head]:
            return shown
        begins = [self._where_values_part(side, max(own)) for side, own in enumerate(lines)]
        return self._witness(*([*own, begin] for own, begin in zip(lines, begins, strict=True)))

    def _where_values_part(self, side: int, line: int) -> int:
        """The first line before an effect that computes a value for it that the other side does not compute.

        A line that only this side has is preferred. 0 if there is none.
        """
        writers, seen, lines = self._writers[side], set[str](), set[int]()
        waiting = [each for each in self._instructions[side] if each.line == line]
        while waiting:
            new = {*waiting.pop().reads} - seen
            seen |= new
            before = [each for name in new for each in writers[name]]
            waiting += before
            lines.update(each.line for each in before)
        own, other = (self._texts.base, self._texts.head)[:: 1 - 2 * side]
        candidates = [each for each in lines & self._alone[side] if 0 < each < line]
        texts = {*other}
        return min(candidates, key=lambda each: (own[each - 1] in texts, each), default=0)

    @functools.cached_property
    def _instructions(self) -> list[list[Instruction]]:
        return [[each for node in side.graph for each in node.block.instructions] for side in self._sides]

    @functools.cached_property
    def _writers(self) -> list[defaultdict[str, list[Instruction]]]:
        """By side and register."""
        writers = [defaultdict[str, list[Instruction]](list) for _ in self._sides]
        for own, instructions in zip(writers, self._instructions, strict=True):
            for each in instructions:
                for name in each.results:
                    own[name].append(each)
        return writers

    @functools.cached_property
    def _alone(self) -> list[set[int]]:
        """By side, the lines that compute what the other side does not."""
        values = [side.values_of for side in self._sides]
        return [
            {line for value, line in side.lines.items() if value not in others}
            for side, others in zip(self._sides, values[::-1], strict=True)
        ]

    def of_all(self, events: Iterable[Event]) -> Witness:
        """Effects that both sides have."""
        numbers = [event.number for event in events]
        base, head = ([lines.get(number, 0) for number in numbers] for lines in self._lines)
        return self._witness(base, head)

    def ordered(self, one: Event, other: Event, between: Event | None = None) -> Witness:
        """Two effects that both sides have, and what base alone has between them."""
        base, head = ([lines.get(each.number, 0) for each in (one, other)] for lines in self._lines)
        middle = self._between(base, between) if between else []
        return self._witness([*base, *middle], head)

    def _between(self, lines: Sequence[int], event: Event) -> list[int]:
        """The nearest such effect of base behind the first of two lines."""
        like = [
            each.line
            for block in self._sides[0].blocks
            for each in block.events
            if each.operation.word == event.operation.word and each.operands == event.operands
        ]
        behind = [line for line in like if line > lines[0]]
        return [min(behind, default=min(like, default=0))]

    def alone(self, event: Event, *, is_gone: bool) -> Witness:
        """An effect of one side, and of the other the nearest before it that both have."""
        own, other = self._lines if is_gone else self._lines[::-1]
        before = [
            (line, other[number]) for number, line in own.items() if number in other and line < event.line
        ]
        _, nearest = max(before, key=lambda lines: lines[0], default=(0, 0))
        sides = ([event.line], [nearest])
        return self._witness(*(sides if is_gone else sides[::-1]))

    def early(self, one: Event, other: Event) -> Hazard | Harmless | NotShown:
        return self.of_early(
            (one.operation, one.line, one.pending), (other.operation, other.line, other.pending)
        )

    def of_early(
        self, one: tuple[Operation, int, frozenset[int]], other: tuple[Operation, int, frozenset[int]]
    ) -> Hazard | Harmless | NotShown:
        """Compares one operation that waits differently on both sides."""
        before, after = one[0].early or Early(), other[0].early or Early()
        pending = sorted(other[2] - one[2])[-1:]
        witness = self._witness([one[1]], [*pending, other[1]])
        name = code(other[0])
        is_wait_for_none = after.registers <= before.registers and self._are_unseen(other[2] - one[2])
        if other[0].effect and is_wait_for_none:
            return NotShown(
                reason="loads or atomics may end later than at base", detail=name, witness=witness
            )
        is_more = after.registers > before.registers or after.copies > before.copies
        if is_more or after.memory & ~before.memory:
            what = f"runs {name} before accesses of memory end that base waits for"
            if after.registers:
                what = f"uses {counted(after.registers, 'register')} in {name} before the loads end"
            return Hazard(kind=HazardKind.ORDER, what=what, witness=witness)
        if after.atomics > before.atomics:
            reason = "an atomic does not wait for one before it, as at base"
            return NotShown(reason=reason, detail=name, witness=witness)
        if before.registers:
            return NotShown(reason="base uses a register before its load ends", detail=name, witness=witness)
        return Harmless(what=f"{name} waits for more")

    def _are_unseen(self, lines: Collection[int]) -> bool:
        """True if what stands in these lines of head only reads, or is atomic: whether others wait for it, no
        text says.
        """
        events = (event for block in self._sides[1].blocks for event in block.events if event.line in lines)
        acts = {event.effect.act for event in events}
        return bool(acts) and acts <= {Act.LOAD, Act.ATOMIC}

    def early_values(
        self, one: tuple[Operation, int], other: tuple[Operation, int]
    ) -> Hazard | Harmless | NotShown:
        """Compares how the operations that compute two values wait."""
        sides = [
            (operation, self._line(n, value), self._sides[n].pending.get(value, frozenset[int]()))
            for n, (operation, value) in enumerate((one, other))
        ]
        return self.of_early(sides[0], sides[1])

    def name_of(self, number: int) -> str:
        """Returns the operation that computes a value, in words; empty where nothing does."""
        values = self._sides[0].values
        if made := values.made_by.get(number):
            return code(made)
        is_truth = values.keys[number][0] in ("not", "lt", "eq")
        opposite = values.made_by.get(values.invert(number)) if is_truth else None
        return f"not {code(opposite)}" if opposite else ""


def _shown(text: Sequence[str], numbers: Iterable[int]) -> tuple[CodeLine, ...]:
    return tuple(
        CodeLine(number=number, text=text[number - 1][:_MAX_LINE])
        for number in sorted({*numbers} - {0})
        if number <= len(text)
    )
