"""What differs in the launch of a case between the two sides: options, defaults, specialization. Pure.

An option that only one side knows is no cause: the run records what each release knows. Nor is one that says
what a release allows: the frontend checks kernels against it, and nothing of it enters their IR.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from irdiff.model import Case, Cause, CauseKind, Launch, Sides

_MAX_VALUE = 40
_DIVISIBLE = re.compile(r"tt\.divisibility, (\d+)")
_CONSTEXPR = "constexpr"
_ALLOWS = ("allowed_", "supported_", "deprecated_")


def of_case(case: Case, launches: Sides[Launch | None]) -> tuple[Cause, ...]:
    """The options, and those of Triton's metadata, which has them as the compiler resolved them."""
    base, head = launches
    found: list[Cause] = []
    if base is not None and head is not None:
        found += _values(base.options, head.options)
        found += _values(base.constexprs, head.constexprs)
        found += _types(base.signature, head.signature)
        found += _attributes(base, head)
    known = base.options.keys() if base is not None else ()
    ours, theirs = (
        {name: str(value) for name, value in side.items() if name in known} for side in case.metadata
    )
    return tuple({row.subject: row for row in (*_values(ours, theirs), *found)}.values())


def _values(base: Mapping[str, str], head: Mapping[str, str]) -> Iterator[Cause]:
    for name in sorted(base.keys() & head.keys()):
        if base[name] != head[name] and not name.startswith(_ALLOWS):
            yield Cause.uncounted(
                CauseKind.LAUNCH, f"`{name}`", f"{_short(base[name])} → {_short(head[name])}"
            )


def _types(base: Mapping[str, str], head: Mapping[str, str]) -> Iterator[Cause]:
    for name in sorted(base.keys() & head.keys()):
        before, after = base[name], head[name]
        if before == after:
            continue
        if _CONSTEXPR in (before, after):
            words = "a constant" if after == _CONSTEXPR else "no constant any more"
            yield Cause.uncounted(CauseKind.LAUNCH, f"argument `{name}`", f"is {words}")
        else:
            yield Cause.uncounted(
                CauseKind.LAUNCH, f"type of `{name}`", f"{_short(before)} → {_short(after)}"
            )


def _attributes(base: Launch, head: Launch) -> Iterator[Cause]:
    for name in sorted(base.signature.keys() & head.signature.keys()):
        before, after = base.attributes.get(name, ""), head.attributes.get(name, "")
        if before == after or base.signature[name] != head.signature[name]:
            continue
        ours, theirs = (_DIVISIBLE.findall(text) for text in (before, after))
        if ours == theirs:
            words = f"{_short(before) or 'none'} → {_short(after) or 'none'}"
            yield Cause.uncounted(CauseKind.LAUNCH, f"specialization of `{name}`", words)
        elif theirs:
            yield Cause.uncounted(CauseKind.LAUNCH, f"`{name}`", f"is known to be divisible by {theirs[0]}")
        else:
            yield Cause.uncounted(
                CauseKind.LAUNCH, f"`{name}`", f"is no longer known to be divisible by {ours[0]}"
            )


def _short(value: str) -> str:
    return value if len(value) <= _MAX_VALUE else value[: _MAX_VALUE - 1] + "…"
