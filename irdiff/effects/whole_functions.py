"""Finds what differs besides the pairs of effects of two functions: order, wait states, alignment. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from irdiff.effects import order, registers_in_use, ways
from irdiff.effects.doubts import Difference
from irdiff.effects.numbering import Event, NumberedFunction
from irdiff.effects.separation import Separation
from irdiff.effects.synchronization import Synchronization
from irdiff.effects.witnesses import Witnesses, noun
from irdiff.ir.program import Act, Awaited, Program, Spacing
from irdiff.model import CodeLine, Hazard, HazardKind, NotShown, Sides, Witness
from irdiff.words import counted

_Pairs = Sequence[tuple[Event | None, Event | None]]


def others(
    base: NumberedFunction,
    head: NumberedFunction,
    witnesses: Witnesses,
    sync: Synchronization,
    paired: _Pairs,
    *,
    is_rounded: bool,
) -> Iterator[Difference]:
    """Compares two functions that do the same but for effects that one side alone has.

    is_rounded: values differ by rounding, so operations count by their names.
    """
    yield from _of_order(base, head, sync, paired)
    yield from _of_early(base)
    yield from _of_registers(base, head, witnesses)
    yield from _of_alignment(base, head, witnesses)
    yield from _of_states(base, head, witnesses, paired, is_rounded=is_rounded)


def _of_order(
    base: NumberedFunction, head: NumberedFunction, sync: Synchronization, paired: _Pairs
) -> Iterator[Difference]:
    partners = {id(other): one for one, other in paired if other}
    partners |= {id(one): None for one, other in paired if one and not other}
    for ours, theirs in zip(base.blocks, head.blocks, strict=True):
        for pair in order.exchanged(base.values, ours.events, theirs.events, partners):
            yield from sync.exchanged(*pair, is_alone=not paired)


def _of_early(base: NumberedFunction) -> Iterator[NotShown]:
    """Where base may read what has not arrived, on a path that no thread takes, head may do so on others."""
    operations = (each.operation for node in base.graph for each in node.block.instructions)
    if any(each.early and each.early.registers for each in operations):
        yield NotShown(reason="base may read what has not arrived")


def _of_registers(base: NumberedFunction, head: NumberedFunction, witnesses: Witnesses) -> Iterator[NotShown]:
    """Registers that are accessed while something in the background uses them, or with no fence behind it."""
    ours, theirs = (registers_in_use.disturbed(side.graph) for side in (base, head))
    reasons = (
        "a register of a {} is overwritten before the wait for it",
        "a register of a {} is read before the wait for it",
        "a register is accessed, and no `wgmma.fence` stands between this and a {} that uses it",
    )
    for reason, one, other in zip(reasons, ours, theirs, strict=True):
        before, after = _by_number(base, one), _by_number(head, other)
        if new := sorted(after.keys() - before.keys()):
            event = after[new[0]]
            yield NotShown(reason=reason.format(noun(event)), witness=witnesses.alone(event, is_gone=False))


def _by_number(side: NumberedFunction, uses: Iterable[registers_in_use.Use]) -> dict[tuple[int, int], Event]:
    """By the number of what uses a register, and the place of the register among those that it uses."""
    places = defaultdict[int, list[int]](list)
    for line, place in uses:
        places[line].append(place)
    events = (event for block in side.blocks for event in block.events)
    return {(event.number, place): event for event in events for place in places.get(event.line, ())}


def _of_states(
    base: NumberedFunction, head: NumberedFunction, witnesses: Witnesses, paired: _Pairs, *, is_rounded: bool
) -> Iterator[Difference]:
    """Wait states are needed between an instruction and one that reads what it gives."""
    made_by = base.values.made_by

    def between(event: Event) -> dict[tuple[object, ...], int]:
        numbers = {n for pair in event.between for n in pair if is_rounded and n in made_by}
        named = {n: made_by[n].name for n in numbers}
        return {tuple(named.get(n, n) for n in pair): count for pair, count in event.between.items()}

    alone = {id(other) for one, other in paired if other and not one}
    for blocks in zip(base.blocks, head.blocks, strict=True):
        ours, theirs = (
            [each for each in block.events if each.effect.act is Act.STATES and id(each) not in alone]
            for block in blocks
        )
        for one, other in zip(ours, theirs, strict=True):
            states = between(other)
            if any(states.get(pair, 0) < count for pair, count in between(one).items()):
                witness = witnesses.of(one, other)
                reason = "an `s_nop` of head stands between other instructions than on base"
                yield NotShown(reason=reason, witness=witness)
                return


def of_waits(waits: Sequence[Sequence[Sequence[Awaited]]]) -> Iterator[NotShown]:
    """If base leaves accesses unfinished where others may need them, head must wait for as much between the
    same accesses: what is unfinished on one path, which no thread may take, tells nothing of other paths.

    waits: by side and block, as of `ProgramReader.unfinished`. One side may have more barriers.
    """
    blocks = list(zip(*waits, strict=True))
    if not any(
        all(_waits_for_as_much(*each, is_gone=is_gone) for each in blocks) for is_gone in (True, False)
    ):
        yield NotShown(reason="base leaves accesses unfinished, and head does not wait for as much")


def _waits_for_as_much(base: Sequence[Awaited], head: Sequence[Awaited], *, is_gone: bool) -> bool:
    """is_gone: whether base may have more barriers; else head may."""
    longer, shorter = (base, head) if is_gone else (head, base)
    rest, limits = iter(shorter), dict[str, int]()
    other = next(rest, None)
    for name, own in longer:
        limits = {each: min(limits.get(each, n), n) for each, n in {**limits, **own}.items()}
        ours, theirs = (limits, other.limits if other else {})[:: 1 if is_gone else -1]
        is_as_much = all(theirs.get(each, n + 1) <= n for each, n in ours.items())
        if other and name == other.name and is_as_much:
            other, limits = next(rest, None), {}
        elif not ways.BARRIER.match(name):
            return False
    return other is None


def of_spacings(programs: Sides[Program], texts: Sides[Sequence[str]]) -> Iterator[NotShown]:
    """Pairs that the hardware does not keep apart, and that are closer on head than those of base.

    Only the compiler knows how many states a pair of a kind needs. So the closest pair of base without a jump
    between has enough. A path with jumps proves nothing: maybe no thread takes it.
    """
    base, head = programs
    if base.has_early:
        yield NotShown(reason="base has too few wait states on some path, so head may have on another")
    for kind, theirs in head.spacings.items():
        ours = base.spacings.get(kind, ())
        closest = min((each for each in ours if each.is_straight), key=_states, default=None)
        enough = closest.states if closest else theirs[0].enough
        partners = [each for each in ours if not each.is_straight]
        crossing = [each for each in theirs if not each.is_straight]
        are_as_far = len(partners) == len(crossing) and all(
            one.states <= other.states for one, other in zip(partners, crossing, strict=True)
        )
        those = [each for each in theirs if each.is_straight or not are_as_far]
        least = min(those, key=_states, default=None)
        if least and least.states < enough:
            lines = [
                [CodeLine(number=n, text=text[n - 1][:200]) for n in each.lines] if each else []
                for text, each in zip(texts, (closest, least), strict=True)
            ]
            detail = f"{kind} after {counted(least.states, 'wait state')}, and after {enough} on base"
            witness = Witness(base=tuple(lines[0]), head=tuple(lines[1]))
            reason = "head may have too few wait states between two instructions"
            yield NotShown(reason=reason, detail=detail, witness=witness)


def _states(spacing: Spacing) -> int:
    return spacing.states


def pending(
    base: NumberedFunction, head: NumberedFunction, witnesses: Witnesses, separation: Separation
) -> Iterator[Difference]:
    """Accesses that may still run at a barrier of head, where base waits for them."""
    barriers = [event for block in head.blocks for event in block.events if event.pending]
    running = [dict(_pending(side)) for side in (base, head)]
    for barrier in {ways.kind_of(each): each for each in barriers if not each.operation.early}.values():
        lost, kind = separation.lost(barrier), ways.kind_of(barrier)
        longer = [
            (each, more)
            for each in barriers
            if ways.kind_of(each) == kind
            and (more := running[1][each.number] - running[0].get(each.number, set()))
        ]
        if lost.pair and not ways.are_global(lost.pair):
            one, other = map(noun, lost.pair)
            what = f"does not wait for a {one} at a barrier before a {other}"
            number = lost.pair[0].number
            relaxed = next((each for each, more in longer if number in more), None)
            witness = (
                witnesses.of_all((*lost.pair, relaxed)) if relaxed else witnesses.ordered(*lost.pair, barrier)
            )
            yield Hazard(kind=HazardKind.ORDER, what=what, witness=witness)
        elif lost.pair or (longer and not lost.is_complete):
            yield NotShown(reason="a barrier may wait for fewer accesses")


def _pending(side: NumberedFunction) -> Iterator[tuple[int, set[int]]]:
    """Yields the numbers of effects, and of the accesses that may still run there."""
    events = [event for block in side.blocks for event in block.events]
    at_line = defaultdict[int, set[int]](set)
    for event in events:
        at_line[event.line].add(event.number)
    for event in events:
        if event.pending:
            yield event.number, set[int]().union(*(at_line[line] for line in event.pending))


def _of_alignment(
    base: NumberedFunction, head: NumberedFunction, witnesses: Witnesses
) -> Iterator[Difference]:
    """Accesses that are equal, and that one instruction of head makes where several of base do."""
    aligned = dict(_alignments(base))
    for event in (event for block in head.blocks for event in block.events):
        wide = event.effect.whole
        is_less = wide > aligned.get(event.number, wide)
        if is_less and base.values.bits(event.address[-1]) & wide - 1:
            reason = f"a {noun(event)} has {wide} bytes at once, and its alignment is not shown"
            yield NotShown(reason=reason, witness=witnesses.of(event, event))


def _alignments(base: NumberedFunction) -> Iterator[tuple[int, int]]:
    """To how many bytes base's accesses are aligned, each as a part of one that several are read as."""
    line, first, whole = 0, 0, 0
    for event in (event for block in base.blocks for event in block.events):
        place = base.values.linear(64, event.address[-1])[0] if event.address else 0
        if event.effect.whole:
            line, first, whole = event.line, place, event.effect.whole
        offset = place - first if event.line == line else 0
        yield event.number, min(whole, offset & -offset or whole) if event.line == line else 0
