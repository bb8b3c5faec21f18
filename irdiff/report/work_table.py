from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from irdiff.counted_work import Amount, LoopWork, Work
from irdiff.model import Case, Sides

_NONE = Amount(0, 0)
_SIZES: tuple[tuple[str, Callable[[Work], int]], ...] = (
    ("programs", lambda work: work.programs),
    ("warps", lambda work: work.warps),
)
"""Known whatever the data are."""
_FIGURES: tuple[tuple[str, Callable[[Work], Amount | None]], ...] = (
    ("instructions executed", lambda work: work.instructions),
    ("instructions executed by threads", lambda work: work.thread_instructions),
    ("global requests", lambda work: work.global_requests),
    ("global {piece} of {size} B", lambda work: work.global_sectors),
    ("  needed at least", lambda work: work.least_global_sectors),
    ("  requests at unknown places", lambda work: work.unknown_global_requests),
    ("shared wavefronts", lambda work: work.shared_wavefronts),
    ("  without bank conflicts", lambda work: work.least_shared_wavefronts),
    ("  requests at unknown places", lambda work: work.unknown_shared_requests),
    ("spill traffic in bytes", lambda work: work.spill_bytes),
    ("bulk copies in bytes", lambda work: work.tma_bytes),
    ("barriers", lambda work: work.barriers),
    ("waits", lambda work: work.waits),
    ("atomics", lambda work: work.atomics),
)
_GROUPS: tuple[tuple[str, Callable[[Work], Mapping[str, Amount]]], ...] = (
    ("operations", lambda work: work.matrix_operations),
    ("bytes", lambda work: work.bytes_by_space),
    ("instructions executed", lambda work: work.by_class),
    ("requests, cache policy", lambda work: work.cache_policies),
)
_CALLED = {"nothing": "no operation"}
"""Names of classes of instructions that would be misread in a report."""
_OF_LOOP: tuple[tuple[str, Callable[[LoopWork], Amount | None]], ...] = (
    ("iterations", lambda loop: loop.iterations),
    ("instructions executed", lambda loop: loop.instructions),
    ("global requests", lambda loop: loop.global_requests),
    ("global {piece}", lambda loop: loop.global_sectors),
    ("shared wavefronts", lambda loop: loop.shared_wavefronts),
    ("spill sectors", lambda loop: loop.spill_sectors),
    ("matrix instructions", lambda loop: loop.matrix_instructions),
    ("barriers", lambda loop: loop.barriers),
    ("waits", lambda loop: loop.waits),
)


def lines(case: Case) -> Iterator[str]:
    """Yields nothing if no side was counted."""
    base, head = case.work
    if base is None and head is None:
        return
    for name, side in case.work.items():
        if not isinstance(side, Work):
            yield f"{name} was not counted: {side.reason if side else 'it has no machine code'}"
        else:
            yield from (f"{name}: {note}" for note in side.notes)
    if isinstance(base, Work) and isinstance(head, Work):
        yield from _compared(Sides(base=base, head=head))
    else:
        for name, side in case.work.items():
            if isinstance(side, Work):
                yield from _alone(name, side)


def _compared(work: Sides[Work]) -> Iterator[str]:
    base, head = work
    for words, size in _SIZES:
        sizes = work.map(size)
        moved = f" → {sizes.head:,}" if sizes.base != sizes.head else ""
        yield f"{words:32} {sizes.base:,}{moved}"
    for words, figure in _FIGURES:
        amounts = Sides(base=figure(base) or _NONE, head=figure(head) or _NONE)
        if amounts.base.high or amounts.head.high:
            yield _line(_named(words, head), amounts, work)
    for words, group in _GROUPS:
        groups = work.map(group)
        for name in sorted({*groups.base, *groups.head}):
            before, after = (figures.get(name, _NONE) for figures in groups)
            if before != after:
                called = _CALLED.get(name, name)
                yield _line(f"{words}: {called}", Sides(base=before, head=after), work)
    yield from _loops(work)


def _alone(name: str, work: Work) -> Iterator[str]:
    yield f"figures of {name} alone:"
    yield from (f"{words:32} {size(work):,}" for words, size in _SIZES)
    for words, figure in _FIGURES:
        if (amount := figure(work)) and amount.high:
            yield f"{_named(words, work):32} {_words(amount, work)}"


def _line(words: str, amounts: Sides[Amount], work: Sides[Work]) -> str:
    """Adds the relative change, if both sides are exact."""
    before, after = amounts
    shown = amounts.zip(work).map(lambda side: _words(*side))
    if shown.base == shown.head:
        return f"{words:32} {shown.base}"
    change = ""
    if before.is_known and after.is_known and before.low and not any(side.is_least for side in work):
        change = f"  {after.low / before.low - 1:+.1%}"
    return f"{words:32} {shown.base} → {shown.head}{change}"


def _words(amount: Amount, work: Work) -> str:
    if work.is_least:
        return f"at least {amount.low:,}"
    return f"{amount.low:,}" if amount.is_known else f"{amount.low:,} to {amount.high:,}"


def _loops(work: Sides[Work]) -> Iterator[str]:
    """Sets loops side by side if both sides have as many, in the order of the code. If data decide how often
    a loop runs, one iteration is counted.
    """
    if any(side.is_least for side in work):
        return
    base, head = work.base.loops, work.head.loops
    if [loop.depth for loop in base] != [loop.depth for loop in head]:
        yield f"loops: {_shape(base)} → {_shape(head)}"
        for name, loops in (("base", base), ("head", head)):
            for loop in loops:
                yield f"{name}, loop at {_place(loop)}: {_figures(loop, work.of(name))}"
        return
    for before, after in zip(base, head, strict=True):
        pairs = [
            (
                _named(words, work.head),
                _per_warp(figure(before) or _NONE, work.base.warps),
                _per_warp(figure(after) or _NONE, work.head.warps),
            )
            for words, figure in _OF_LOOP
        ]
        moved = [f"{words} {ours} → {theirs}" for words, ours, theirs in pairs if ours != theirs]
        if moved:
            place = f"{_place(before)} → {_place(after)}"
            yield f"loop at {place}, depth {after.depth}, a warp: {', '.join(moved)}"


def _named(words: str, work: Work) -> str:
    return words.format(piece=work.piece, size=work.line_bytes)


def _place(loop: LoopWork) -> str:
    return loop.label or f"{loop.first_address:#x}"


def _shape(loops: tuple[LoopWork, ...]) -> str:
    return f"{len(loops)} of depth {', '.join(str(loop.depth) for loop in loops)}" if loops else "none"


def _figures(loop: LoopWork, work: Work) -> str:
    shown = [(_named(words, work), figure(loop) or _NONE) for words, figure in _OF_LOOP]
    return "a warp: " + ", ".join(
        f"{words} {_per_warp(amount, work.warps)}" for words, amount in shown if amount.high
    )


def _per_warp(amount: Amount, warps: int) -> str:
    low, high = amount.low / warps, amount.high / warps
    return f"{low:,.6g}" if amount.is_known else f"{low:,.6g} to {high:,.6g}"
