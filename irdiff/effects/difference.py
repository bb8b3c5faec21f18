"""How the effects of two functions differ, each difference as a sentence that a reviewer can check. Pure.

Effects that only one side has are paired within their block by operation, and each pair is asked where its
predicate, address and operands begin to differ. Where the effects are the same, their order may differ.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from irdiff.effects import order, pairing, separation, wording
from irdiff.effects.numbering import Event, NumberedFunction
from irdiff.effects.roots import Root, Roots
from irdiff.ir.program import MARK, UNFINISHED, Act, Graph, Operation, Verbatim
from irdiff.model import EffectClass

SYNC, MEMORY, FLOAT, CONTROL, UNKNOWN, COST = (
    EffectClass.SYNCHRONIZATION, EffectClass.MEMORY, EffectClass.FLOAT,
    EffectClass.CONTROL, EffectClass.UNKNOWN, EffectClass.COST,
)  # fmt: skip
_UNPAIRED = "synchronization without a pair"
FLOAT_DIFFERS = "floating-point operation differs"
_ADDRESS = "uses another address"
_KINDS = {Act.SYNC: SYNC, Act.OPAQUE: UNKNOWN, Act.LANES: FLOAT}
"""Of the operands; lanes are exchanged where a reduction combines."""
_COUNTS = re.compile(r"(?<!cluster\.)arrive|expect_tx|mbarrier|init|inval")
"""One more is as wrong as one fewer."""
_OPPOSITE = {"a select is gone": "a select is new", "a select is new": "a select is gone"}
_SEPARATES = re.compile(r"bar\b|barrier\b|fence|s_barrier|tcgen05\.wait|llvm\..*(?:barrier|bar\.)")
_DOES_MORE = re.compile(
    r"(?:asm|load|store) |tensormap|.*(?:alloc|setreg|set_gpr|setvskip|trap|sendmsg|_mode)"
)
"""In order with everything, and no synchronization, or not only."""
_NEEDED_ONLY_BETWEEN = re.compile(
    r"bar\.(?:warp\.)?sync|barrier\.(?:cta\.)?sync|s_barrier|tcgen05\.wait|llvm\..*barrier(?!\.cluster)"
)
"""Barriers of all threads of a block and waits of tensor memory: they keep accesses apart and do no more."""
_PIECES = re.compile(r"(?:\.v\d)?\.b\d+$")
_TWO = re.compile(r"ds_(?:read|write)2")
_WAITS = re.compile(r"wait")
_MATRIX = re.compile(r"mf?ma")
_GREATEST = re.compile(r"`m(?:ax|in)\.")
_FLOAT_CONSTANT = re.compile(r"0(?:[fd]|x[HR]?)[0-9A-F]{4,}|-?\d\.\d+")


class EffectDiffers(NamedTuple):
    kind: EffectClass
    subject: str
    """A sentence in the singular."""
    what: object
    """What it holds of: counted once."""
    act: str = ""
    """Of an address: whose, as `shared load`."""


def said(found: Iterable[EffectDiffers]) -> tuple[tuple[EffectClass, str, int], ...]:
    """Equal sentences once, with how often they hold; the gravest first."""
    counts = Counter(row[:2] for row in dict.fromkeys(row[:3] for row in found))
    rows = [(kind, subject, count) for (kind, subject), count in counts.items()]
    return tuple(
        sorted(
            rows,
            key=lambda row: (list(EffectClass).index(row[0]), "write another" in row[1], -row[2], row[1]),
        )
    )


class Differences:
    """Of two functions of one shape that are numbered."""

    def __init__(self, base: NumberedFunction, head: NumberedFunction) -> None:
        self._base, self._head = self._sides = base, head
        self._values = base.values
        self._roots = Roots(base, head)
        self._is_rearranged = False
        self._has_other_lanes = False
        self._subjects: set[str] = set()
        self._lost: dict[object, separation.Lost] = {}
        self._both = base.computed & head.computed
        self._operations = [
            [made.operation for node in side.graph for made in node.block.instructions]
            for side in (base, head)
        ]
        self._names = [{each.name for each in own} for own in self._operations]
        self._constants = [{part for each in own for part in each.operands} for own in self._operations]
        self._guards = {event.guard for block in base.blocks for event in block.events}

    def all(self) -> list[EffectDiffers]:
        """Empty where both do the same."""
        found: list[EffectDiffers] = []
        both = list(zip(self._base.blocks, self._head.blocks, strict=True))
        unequal = [
            (pairing.unequal(one.events, other.events), pairing.unequal(other.events, one.events))
            for one, other in both
        ]
        pairs = [
            [pair for pair in pairing.paired(*sides) if all(pair) or not any(map(_is_pure, pair))]
            for sides in unequal
        ]
        self._roots.partners = {
            ours.number: theirs.number for row in pairs for ours, theirs in row if ours and theirs
        }
        is_same = not any(pairs) and all(a.condition == b.condition for a, b in both)
        for number, (base, head) in enumerate(both):
            found += self._of_block(*unequal[number], pairs[number])
            one, other = base.condition, head.condition
            for root in self._roots.between(one, other) if one is not None and other is not None else ():
                words = "branch or loop ends by another condition"
                found.append(self._by_root(CONTROL, words, root, number))
        found += self._of_lanes([event for rows in unequal for event in _in_another_order(*rows)])
        if not is_same:
            return self._with_doubt(found) or [
                EffectDiffers(UNKNOWN, "effects differ, and where is not found", 0)
            ]
        for base, head in both:
            pair = order.exchanged(self._values, base.events, head.events)
            found += [self._of_order(*pair)] if pair else []
        return found

    def _of_block(
        self, gone: list[Event], new: list[Event], pairs: Sequence[tuple[Event | None, Event | None]]
    ) -> Iterator[EffectDiffers]:
        found: list[tuple[str, EffectDiffers]] = []
        only: dict[bool, set[str]] = {True: set(), False: set()}
        unclear: set[str] = set()
        for one, other in pairs:
            if one and other:
                rows, space = list(self._of_pair(one, other)), _space(one)
                is_other = one.operation.name != other.operation.name and one.address != other.address
                is_moved = any(row.kind is UNKNOWN and _ADDRESS in row.subject for row in rows)
                unclear |= {space} if is_other or is_moved or _is_joined(one, other) else set()
            else:
                event = one or other
                assert event
                rows, space = [self._gone(event) if one else self._new(event)], _space(event)
                rows = [*map(_doubted, rows)] if self._may_be_scalar(event, is_gone=bool(one)) else rows
                only[one is None].add(space)
            found += [(space, row) for row in rows]
        if _is_paired_otherwise(gone, new):
            unclear.add("shared")
        doubted = (unclear | (only[True] & only[False])) - {""}
        self._is_rearranged = self._is_rearranged or bool(doubted)
        for space, row in found:
            yield _doubted(row) if space in doubted and row.kind is MEMORY else row

    def _of_lanes(self, exchanges: list[Event]) -> Iterator[EffectDiffers]:
        """The order counts for sums, and not for the greatest of all."""
        if not exchanges:
            return
        values, numbers = self._values, {event.number for event in exchanges}
        taken = {n for n, key in enumerate(values.keys) if key[0] == "part" and key[1] in numbers}
        sums = [
            made
            for number, made in values.made_by.items()
            if made.is_float and made.commutes and not made.associates
            if not taken.isdisjoint(values.keys[number][1:])
        ]
        self._has_other_lanes = True
        kind, detail = (FLOAT, f": {wording.code(sums[0])}") if sums else (UNKNOWN, "")
        yield EffectDiffers(kind, f"lanes are combined in another order{detail}", 0)

    def _with_doubt(self, found: list[EffectDiffers]) -> list[EffectDiffers]:
        """Where accesses are arranged differently, two that are compared may be no pair.

        And where shared memory is written and read at other places, that may be another layout. Where the
        opposite is found too, or several constants differ by other distances, two operands that may change
        places were compared crosswise.
        """
        acts = {row.act for row in found}
        other_layout = len(acts & {"shared load", "shared store", " copy", " matrix instruction"}) > 1
        floats = [Counter(each.name for each in own if each.is_float) for own in self._operations]
        same_floats = floats[0] == floats[1] and (self._is_rearranged or other_layout)
        other_code = any(row.act != Act.STATES for row in found)  # its wait states are others
        several = _several(self._subjects)
        return [
            _doubted(row)
            if (
                row.kind is FLOAT
                and (same_floats or (self._has_other_lanes and _GREATEST.search(row.subject)))
            )
            or _mirrored(row.subject) in self._subjects
            or row.subject.partition(": ")[0] in several
            or (row.act == Act.STATES and other_code)
            or (row.act == _UNPAIRED and (self._is_rearranged or other_layout))
            or (other_layout and _is_of_layout(row))
            else row
            for row in found
        ]

    def _of_pair(self, one: Event, other: Event) -> Iterator[EffectDiffers]:
        act, noun = one.effect.act, wording.noun(one)
        if one.operation.name != other.operation.name:
            yield self._respelled(one.operation, other.operation, _renamed(one, other))
        another = f"{noun} has another predicate"
        if (one.guard is None) != (other.guard is None):
            verb = "is new" if one.guard is None else "is gone"
            kind = MEMORY if one.address == other.address else UNKNOWN
            yield EffectDiffers(kind, f"the predicate of a {noun} {verb}", one.number)
        elif one.guard != other.guard and other.guard in self._guards:
            yield EffectDiffers(MEMORY, f"{noun} has the predicate of another access", one.number)
        else:
            guards = [(one.guard, other.guard), (one.lanes, other.lanes)]
            pairs = [(a, b) for a, b in guards if a is not None and b is not None]
            yield from self._by_roots(MEMORY, another, one, pairs)
        kind = _KINDS.get(act, MEMORY)
        verb = "writes another value" if act in (Act.STORE, Act.ATOMIC) else "has another operand"
        for words, mine, its in (
            (_ADDRESS, one.address, other.address), (verb, one.operands, other.operands)
        ):  # fmt: skip
            if len(mine) != len(its):
                is_respelled = one.operation.name != other.operation.name
                yield EffectDiffers(
                    UNKNOWN if is_respelled else kind, f"{noun} has other operands", one.number
                )
                continue
            pairs = list(zip(mine, its, strict=True))
            if _waits_for_more(self._values.value_of, act, one, pairs):
                yield EffectDiffers(COST, f"{noun} waits for more", one.number)
                continue
            place = f"{one.effect.space} {act}" if words == _ADDRESS or act is Act.MATRIX else ""
            for row in self._by_roots(kind, f"{noun} {words}", one, pairs):
                is_moved = words == _ADDRESS and row.kind is MEMORY and "constant" in row.subject
                overlaps = is_moved and self._overlaps(one, other)
                added = ", so two places in shared memory overlap" if overlaps else ""
                yield row._replace(act=place, subject=row.subject + added)

    def _may_be_scalar(self, event: Event, *, is_gone: bool) -> bool:
        """AMD: whether the other side may load for all lanes at once what this loads for each."""
        before, after = (sum(each.name.startswith("s_load") for each in own) for own in self._operations)
        is_load = event.effect.act is Act.LOAD and event.effect.space == "global"
        return is_load and (before < after if is_gone else after < before)

    def _overlaps(self, one: Event, other: Event) -> bool:
        """Whether only head's touches bytes of shared memory that another access has on both sides."""
        ours, theirs = (order.extent(self._values, event) for event in (one, other))
        if not ours or not theirs or ours._replace(first=theirs.first) != theirs:
            return False
        staying = [each for each in self._staying if each.symbol == ours.symbol]
        return any(ours.is_apart(each) and not theirs.is_apart(each) for each in staying)

    @cached_property
    def _staying(self) -> set[order.Extent]:
        """The bytes of shared memory that both sides touch by equal accesses."""
        ours, theirs = (
            {event.number: event for code in side.blocks for event in code.events} for side in self._sides
        )
        found = (order.extent(self._values, ours[number]) for number in ours.keys() & theirs.keys())
        return {each for each in found if each}

    def _respelled(self, one: Operation, other: Operation, row: EffectDiffers) -> EffectDiffers:
        """In doubt where an intrinsic of LLVM stands for another wherever that was: LLVM renames some."""
        names = one.name, other.name
        is_all = names[0] not in self._names[1] and names[1] not in self._names[0]
        is_intrinsic = all(name.startswith("llvm.") for name in names)
        return row._replace(kind=UNKNOWN) if is_intrinsic and is_all else row

    def _by_roots(
        self, kind: EffectClass, subject: str, event: Event, pairs: Sequence[tuple[int, int]]
    ) -> Iterator[EffectDiffers]:
        for root in dict.fromkeys(root for a, b in pairs for root in self._roots.between(a, b)):
            yield self._by_root(kind, subject, root, event.number)

    def _by_root(self, kind: EffectClass, subject: str, root: Root, what: object) -> EffectDiffers:
        """A risk where the text shows what differs; otherwise both sides may compute the same."""
        row = self._of_root(kind, subject, root, what)
        self._subjects.add(row.subject)
        is_value = kind is not SYNC and "address" not in subject and "predicate" not in subject
        is_known = self._values.value_of(root.base) is not None
        is_crosswise = is_value and not is_known and {root.base, root.head} <= self._both
        is_crosswise = is_crosswise or (is_value and root.is_guess and row.kind is not FLOAT)
        return _doubted(row) if is_crosswise and row.kind is not UNKNOWN else row

    def _of_root(self, kind: EffectClass, subject: str, root: Root, what: object) -> EffectDiffers:
        made = [] if root.is_cut else [each for each in self._roots.made(root) if each]
        names, pair = [wording.code(each) for each in made], (root.base, root.head)
        if len(made) > 1 and len(set(names)) == 1 and any(MARK in each.name for each in made):
            return _early(made[0], made[1], pair)
        keys = [self._values.keys[each] for each in pair]
        is_element = keys[0][0] == keys[1][0] == "part" and keys[0][2] != keys[1][2]
        if keys[0][0] == keys[1][0] == "text":
            constants = [key[1] for key in keys]
            if all(map(_FLOAT_CONSTANT.fullmatch, constants)) and not self._have(*constants):
                return EffectDiffers(FLOAT, f"floating-point constant differs: {' → '.join(constants)}", pair)
        if (
            len(made) > 1
            and not is_element
            and any(each.is_float for each in made)
            and (len(set(names)) == 1 or all(each.is_float for each in made))
            and len({bool(_MATRIX.search(name)) for name in names}) == 1
        ):
            detail = " → ".join(names) if len(set(names)) == 2 else f"{names[0]} has other operands"
            row = EffectDiffers(FLOAT, f"{FLOAT_DIFFERS}: {detail}", pair)
            return self._respelled(made[0], made[-1], row)
        detail = ""
        if root.constants is not None:
            detail = f"constant {root.constants[0]} → {root.constants[1]}"
        elif root.is_select:
            detail = f"a select is {'gone' if self._values.keys[root.base][0] == 'select' else 'new'}"
        elif len({*map(self._compared, pair)}) == 1:
            both = [self._comparison(each) for each in pair]
            detail = " → ".join(both) if len({*map(wording.unsigned, both)}) == 2 and all(both) else ""
        if detail:
            return EffectDiffers(kind, f"{subject}: {detail}", what)
        detail = f": {' → '.join(dict.fromkeys(names))}" if names else ""
        return EffectDiffers(UNKNOWN, f"{subject}{detail}, perhaps only computed in another way", what)

    def _compared(self, number: int) -> frozenset[object]:
        """The two values that a comparison compares; of any other value, itself."""
        key = self._values.keys[number]
        key = self._values.keys[key[1]] if key[0] == "not" else key
        return frozenset(key[-2:] if re.search("^lt$|^eq$|setp|cmp", str(key[0])) else [(number,)])

    def _comparison(self, number: int) -> str:
        """Its name, or the opposite where only that is computed."""
        made_by = self._values.made_by
        if made := made_by.get(number):
            return wording.code(made)
        made = made_by.get(self._values.invert(number))
        return wording.opposite(wording.code(made)) if made else ""

    def _have(self, base: str, head: str) -> bool:
        """Whether both sides have both constants."""
        return all(Verbatim(text) in own for text, own in zip((head, base), self._constants, strict=True))

    # synchronization

    def _gone(self, event: Event) -> EffectDiffers:
        if event.effect.act is Act.SYNC:
            return self._unsynchronized(event)
        words = f"{wording.noun(event)} is gone"
        words += ": fewer wait states before what reads a result" * bool(_states(event))
        return EffectDiffers(_kind_of(event), words, event.number, _states(event))

    def _new(self, event: Event) -> EffectDiffers:
        name, act = event.operation.name, event.effect.act
        kind = _kind_of(event)
        if act is Act.STATES or (act is Act.SYNC and not _COUNTS.search(name)):
            others = _SEPARATES.match(name) and separation.is_divided(self._head, event)
            kind = UNKNOWN if others or _DOES_MORE.match(name) else COST
        return EffectDiffers(kind, f"{wording.noun(event)} is new", event.number, _states(event))

    def _unsynchronized(self, event: Event) -> EffectDiffers:
        name, noun = event.operation.name, wording.noun(event)
        counts = [
            sum(each.operation.name == name for code in side.blocks for each in code.events)
            for side in self._sides
        ]
        if not _SEPARATES.match(name):
            kind, words = (SYNC, "is gone") if counts[0] > counts[1] else (UNKNOWN, "is in another place")
            return EffectDiffers(kind, f"{noun} {words}", event.number, _UNPAIRED)
        like = separation.kind_of(event)
        if like not in self._lost:
            self._lost[like] = separation.lost(self._base, self._head, event)
        found = self._lost[like]
        if found.pair:
            words = f"{noun} between {wording.both(*map(wording.short, found.pair))} is gone"
            return EffectDiffers(SYNC, words, event.number, "" if found.is_complete else _UNPAIRED)
        is_divided = separation.is_divided(self._base, event)
        if found.is_complete and _NEEDED_ONLY_BETWEEN.match(name) and not is_divided:
            words = f"{noun} is gone: what is left keeps the same accesses apart"
            return EffectDiffers(COST, words, event.number)
        words = f"{noun} is {'gone' if counts[0] > counts[1] else 'in another place'}"
        return EffectDiffers(UNKNOWN, f"{words}: no accesses that may meet are seen around it", event.number)

    def _of_order(self, one: Event, other: Event) -> EffectDiffers:
        acts = {one.effect.act, other.effect.act}
        words = f"{wording.noun(one)} now stands behind the {wording.noun(other)} that followed"
        if Act.SYNC in acts:
            return EffectDiffers(SYNC, words, one.number)
        if order.same_bytes(self._values, one, other):
            return EffectDiffers(MEMORY, f"{words}, on the same bytes", one.number)
        return EffectDiffers(UNKNOWN, f"{words}, perhaps on other bytes", one.number)


def _space(event: Event) -> str:
    return event.effect.space or (event.effect.act if event.effect.act is Act.COPY else "")


def _doubted(row: EffectDiffers) -> EffectDiffers:
    if row.subject.startswith("the predicate of") and "shared" not in row.subject:
        return row
    words = row.subject.partition(": ")[0]
    return row._replace(kind=UNKNOWN, subject=f"{words}, among others that are arranged differently")


def _is_of_layout(row: EffectDiffers) -> bool:
    """Whether another layout of shared memory may be why."""
    if row.kind is MEMORY:
        return bool(row.act) or row.subject.startswith("shared ")
    return row.kind is SYNC and bool(row.act) and _ADDRESS in row.subject


def _mirrored(subject: str) -> str:
    """The opposite edit; empty where a sentence has none."""
    words, _, detail = subject.partition(": ")
    if detail in _OPPOSITE:
        return f"{words}: {_OPPOSITE[detail]}"
    constant = "constant " * detail.startswith("constant ")
    one, arrow, other = detail.removeprefix(constant).partition(" → ")
    return f"{words}: {constant}{other} → {one}" if arrow else ""


def _several(subjects: Iterable[str]) -> set[str]:
    """The values that differ in several constants by several distances: other elements, in another order."""
    found: defaultdict[str, list[int]] = defaultdict(list)
    for subject in subjects:
        words, _, detail = subject.partition(": constant ")
        if detail and "address" not in words and "predicate" not in words:
            one, other = detail.split(" → ")
            found[words].append(int(other) - int(one))
    return {words for words, distances in found.items() if len(distances) > 2 and len({*distances}) > 1}


def _early(base: Operation, head: Operation, what: object) -> EffectDiffers:
    """In head a risk. Where only base does not wait, an access waits for more, or a value is another."""
    why, before = head.name.partition(MARK)[2], base.name.partition(MARK)[2]
    copies = [sum(map(int, re.findall(r"(\d+) copies", text))) for text in (before, why)]
    if copies[0] < copies[1] or not {*re.findall("[a-z]+", why)} <= {*re.findall("[a-z]+", before)}:
        return EffectDiffers(SYNC, f"{wording.code(head)} comes too early: {why}", what)
    kind = COST if before.endswith(UNFINISHED) else UNKNOWN
    return EffectDiffers(kind, f"{wording.code(head)} waits for more: in base, {before}", what)


def _renamed(one: Event, other: Event) -> EffectDiffers:
    ours, theirs = one.operation, other.operation
    if ours.name.partition(MARK)[0] == theirs.name.partition(MARK)[0]:
        return _early(ours, theirs, one.number)
    words = f"{wording.code(ours)} → {wording.code(theirs)}"
    if one.effect.act is Act.MATRIX or ours.is_float:
        return EffectDiffers(FLOAT, words, one.number)
    if ours.name == f"{theirs.name}.read" and _WAITS.search(ours.name):
        return EffectDiffers(COST, f"{wording.noun(one)} waits for more: {words}", one.number)
    kinds = {_PIECES.sub("", each.name) for each in (ours, theirs)}
    if _is_joined(one, other):
        words = f"{wording.noun(one)} stands in one instruction with another: {words}"
        return EffectDiffers(UNKNOWN, words, one.number)
    if len(kinds) == 1 and one.effect.size == other.effect.size and one.address == other.address:
        words = f"{wording.noun(one)} has the same bytes in other pieces: {words}"
        return EffectDiffers(UNKNOWN, words, one.number)
    ordered = r"acq|rel|relaxed|seq_cst|monotonic|\.(?:cta|cluster|gpu|sys)\b|syncscope"
    kind = SYNC if re.findall(ordered, ours.name) != re.findall(ordered, theirs.name) else _kind_of(one)
    return EffectDiffers(kind, f"{wording.noun(one)} differs: {words}", one.number, _states(one))


def _is_paired_otherwise(gone: Iterable[Event], new: Iterable[Event]) -> bool:
    """Whether AMD's instructions that make two accesses make the same ones in all, at the same offsets."""
    ours, theirs = (
        sorted(name for event in side if _TWO.match(name := event.operation.name)) for side in (gone, new)
    )
    before, after = (Counter(re.findall(r"\S+\d:([1-9]\d*)", " ".join(names))) for names in (ours, theirs))
    return ours != theirs and len(ours) == len(theirs) and before == after


def _is_joined(one: Event, other: Event) -> bool:
    """Whether one of the two is an instruction of AMD that makes two accesses."""
    return bool(_TWO.match(one.operation.name)) != bool(_TWO.match(other.operation.name))


def _in_another_order(gone: Iterable[Event], new: Iterable[Event]) -> list[Event]:
    """Exchanges between lanes that both sides of a block have, in two orders."""
    sides = [[each for each in side if each.effect.act is Act.LANES] for side in (gone, new)]
    names = [[(each.operation.name, *pairing.texts(each)) for each in side] for side in sides]
    return [] if names[0] == names[1] or Counter(names[0]) != Counter(names[1]) else [*sides[0], *sides[1]]


def _is_pure(event: Event | None) -> bool:
    """Whether what it gives is all that it does: who reads that tells of it."""
    return event is not None and event.effect.act is Act.LANES


def _states(event: Event) -> str:
    return Act.STATES if event.effect.act is Act.STATES else ""


def _kind_of(event: Event) -> EffectClass:
    if event.effect.act in (Act.SYNC, Act.STATES):
        return SYNC
    if event.effect.act is Act.MATRIX or event.operation.is_float:
        return FLOAT
    is_spilled = event.effect.space == "local"  # what a thread keeps for itself
    return UNKNOWN if is_spilled or event.effect.act in (Act.OPAQUE, Act.LANES) else MEMORY


def _waits_for_more(
    value_of: Callable[[int], int | None], act: Act, event: Event, pairs: Sequence[tuple[int, int]]
) -> bool:
    """Whether head's wait is base's and leaves fewer unfinished."""
    if act is not Act.SYNC or not _WAITS.search(event.operation.name) or _COUNTS.search(event.operation.name):
        return False
    found = [(value_of(a), value_of(b)) for a, b in pairs if a != b]
    return bool(found) and all(a is not None and b is not None and b < a for a, b in found)


def of_shapes(base: Graph, head: Graph) -> Iterator[EffectDiffers]:
    """Of two functions whose blocks do not correspond: what one has more of."""
    ours, theirs = (
        Counter(
            (each.operation.effect.act, wording.code(each.operation))
            for node in side
            for each in node.block.instructions
            if each.operation.effect and each.operation.effect.act in (Act.SYNC, Act.MATRIX)
        )
        for side in (base, head)
    )
    yield EffectDiffers(UNKNOWN, f"the blocks of the code do not correspond: {len(base)} and {len(head)}", 0)
    for act, name in {**ours, **theirs}:
        before, after = ours[act, name], theirs[act, name]
        if before != after:
            is_other = act is Act.MATRIX and not (before and after)
            yield EffectDiffers(FLOAT if is_other else UNKNOWN, f"there are {after} {name}, not {before}", 0)
