"""Finds what differs in the launch of a case between the two sides: options, defaults, specialization. An
option that only one side knows is no cause: the run records what each release knows. Nor is an option that
says what a release allows: the frontend checks kernels against it, and nothing of it enters their IR.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from irdiff.compare.edits import Edit
from irdiff.model import Cause, CauseKind, ComparedCase, Launch, Sides

_MAX_VALUE = 40
_DIVISIBLE = re.compile(r"tt\.divisibility, (\d+)")
_PART = re.compile(r", (?![^\[]*\])")
"""Between two facts of one argument: `fp32 [64, 8], offset 0`."""
_CALL = re.compile(r"call (\d+)(?:, (\d+) times)?")
_CONSTEXPR = "constexpr"
CONFIG = "autotuner config"
_ALLOWS = ("allowed_", "supported_", "deprecated_")
_NOTHING = frozenset({"", "none", "None"})
"""How releases write an option that is not set."""


def of_case(case: ComparedCase, launches: Sides[Launch | None]) -> tuple[Cause, ...]:
    """Takes options as the compiler resolved them (Triton's metadata)."""
    base, head = launches
    if base is None or head is None:
        return ()
    resolved = (
        {name: str(value) for name, value in side.items() if name in base.options} for side in case.metadata
    )
    causes = (
        *_values(*resolved),
        *_values(base.options, head.options),
        *_values(base.constexprs, head.constexprs),
        *_types(base.signature, head.signature),
        *_attributes(base, head),
    )
    return tuple(
        {subject: Cause.uncounted(CauseKind.LAUNCH, subject, detail) for subject, detail in causes}.values()
    )


def of_text(edit: Edit) -> tuple[Cause, ...]:
    """`one more option num_stages`, `grid [4, 1] → [8, 1]`."""
    by_subject: dict[str, Sides[list[str]]] = {}
    headings = [(line.sign, call) for line in edit.lines if (call := _CALL.fullmatch(line.text.strip()))]
    base, head = ({call[1] for sign, call in headings if sign == side} for side in "-+")
    calls, alone = Counter[str](), set[str]()
    for line in edit.lines:
        if call := _CALL.fullmatch(line.text.strip()):
            calls[line.sign] += int(call[2] or 1)
            alone |= set() if call[1] in base & head else {line.sign}
            continue
        if line.sign in alone:  # it belongs to a call that this side alone makes
            continue
        subject, _, value = line.text.strip().replace("autotuner's ", "autotuner ", 1).partition(": ")
        sides = by_subject.setdefault(subject, Sides(base=[], head=[]))
        (sides.head if line.sign == "+" else sides.base).append(value)
    more = calls["+"] - calls["-"]
    number: tuple[Cause, ...] = ()
    if more:
        number = (replace(Cause.uncounted(CauseKind.NUMBER, "call"), count=more),)
    elif calls and not by_subject:
        number = (Cause.uncounted(CauseKind.LAUNCH, "calls", "with other values"),)
    return (*number, *(_of_lines(subject, *sides) for subject, sides in by_subject.items()))


def _of_lines(subject: str, base: Sequence[str], head: Sequence[str]) -> Cause:
    if len(base) == len(head) == 1:
        ours, theirs = (_PART.split(value) for value in (base[0], head[0]))
        only = (
            ", ".join(part for part in a if part not in b) or "none"
            for a, b in ((ours, theirs), (theirs, ours))
        )
        return Cause.uncounted(CauseKind.LAUNCH, subject, _step(*only))
    if len(base) == len(head):
        return Cause.uncounted(CauseKind.LAUNCH, subject, "with other values")
    cause = Cause.uncounted(CauseKind.NUMBER, subject)
    return replace(cause, count=len(head) - len(base))


def _values(base: Mapping[str, str], head: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name, before, after in _different(base, head):
        if not name.startswith(_ALLOWS) and not {before, after} <= _NOTHING:
            yield f"`{name}`", _step(before, after)


def _types(base: Mapping[str, str], head: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name, before, after in _different(base, head):
        if _CONSTEXPR in (before, after):
            yield (
                f"argument `{name}`",
                f"is {'a constant' if after == _CONSTEXPR else 'no constant any more'}",
            )
        else:
            yield f"type of `{name}`", _step(before, after)


def _attributes(base: Launch, head: Launch) -> Iterator[tuple[str, str]]:
    alike = [name for name, kind in base.signature.items() if head.signature.get(name) == kind]
    sides = ({name: side.attributes.get(name, "") for name in alike} for side in (base, head))
    for name, before, after in _different(*sides):
        ours, theirs = (_DIVISIBLE.findall(text) for text in (before, after))
        if ours == theirs:
            yield f"specialization of `{name}`", _step(before or "none", after or "none")
        elif theirs:
            yield f"`{name}`", f"is known to be divisible by {theirs[0]}"
        else:
            yield f"`{name}`", f"is no longer known to be divisible by {ours[0]}"


def _different(base: Mapping[str, str], head: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Yields (name, value at base, value at head) for names that both sides have."""
    for name in sorted(base.keys() & head.keys()):
        if base[name] != head[name]:
            yield name, base[name], head[name]


def _step(before: str, after: str) -> str:
    return " → ".join(
        value if len(value) <= _MAX_VALUE else value[: _MAX_VALUE - 1] + "…" for value in (before, after)
    )
