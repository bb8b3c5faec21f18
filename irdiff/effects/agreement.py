"""Finds code that needs more than its launch gives: threads, registers, shared memory, scratch, descriptors.
Pure.

If head's code contradicts its launch or its header, and base's code does not, this is a hazard of the kind
access. If the launch gives something else than on base, and the code may rely on that, it is a doubt.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from irdiff import backends
from irdiff.model import CodeLine, Hazard, HazardKind, NotShown, Sides, Witness

Metadata = Mapping[str, object]
_Violation = tuple[str, tuple[CodeLine, ...]]
"""A description of a fault, and the lines of the code that show it."""
_FOR_THE_CODE = ("tensordesc_meta", "global_scratch_size", "global_scratch_align", "profile_scratch_size")
"""The values that a launch passes to the code besides arguments."""


def violations(stage: str, texts: Sides[Sequence[str]], metadata: Sides[Metadata]) -> tuple[Hazard, ...]:
    """Returns where head's code contradicts its launch, and base's code does not."""
    return tuple(_new(texts.zip(metadata).map(lambda side: _violations(stage, *side))))


def _new(violations: Sides[Iterator[_Violation]]) -> Iterator[Hazard]:
    """Those of head that base has not."""
    base, head = map(dict, violations)
    for what, lines in head.items():
        if what not in base:
            yield Hazard(kind=HazardKind.ACCESS, what=what, witness=Witness(base=(), head=lines))


def _violations(stage: str, text: Sequence[str], metadata: Metadata) -> Iterator[_Violation]:
    backend = backends.of_assembly(stage)
    warps, size = metadata.get("num_warps"), metadata.get("warp_size", backend.WARP_SIZE)
    if isinstance(warps, int) and isinstance(size, int) and (pattern := backend.THREADS):
        for number, line in enumerate(text, 1):
            if (found := pattern.search(line)) and int(found[1]) != warps * size * _extra(metadata):
                what = f"is launched with {warps} warps of {size}, and its code is for {found[1]} threads"
                yield what, (CodeLine(number=number, text=line),)


def of_code(stage: str, texts: Sides[Sequence[str]]) -> Iterator[Hazard]:
    """Head's code has faults of its own that base's code has not."""
    return _new(texts.map(backends.of_assembly(stage).faults))


def _extra(metadata: Metadata) -> float:
    """Warps beside those of the option: warp specialization adds some."""
    total, warps = metadata.get("total_num_warps"), metadata.get("num_warps")
    return total / warps if isinstance(total, int) and isinstance(warps, int) and total else 1


def _passed(metadata: Metadata, name: str) -> object:
    """Returns None for what is missing or has no bytes: older releases have no scratch memory."""
    is_empty = name == "global_scratch_align" and not metadata.get("global_scratch_size")
    return None if is_empty else metadata.get(name) or None


def doubts(metadata: Sides[Metadata]) -> NotShown | None:
    """Returns what the launch passes differently, or has less of, if the code may rely on it."""
    base, head = metadata
    names = [name for name in _FOR_THE_CODE if _passed(base, name) != _passed(head, name)]
    before, after = base.get("shared"), head.get("shared")
    if isinstance(before, int) and isinstance(after, int) and after < before:
        names.append("shared")
    if not names:
        return None
    words = ", ".join(f"{name} {base.get(name)} → {head.get(name)}"[:80] for name in names)
    return NotShown(reason="the launch passes something else to the code", detail=words)
