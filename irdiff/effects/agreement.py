"""Whether what a launch passes agrees with the code: what must, and does not, is an error. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from irdiff.backends import amd, nvidia
from irdiff.model import CodeLine, Hazard, HazardKind, NotShown, Sides, Witness

Metadata = Mapping[str, object]
_THREADS = {
    nvidia.ASSEMBLY: re.compile(r"\.(?:reqntid|maxntid) (\d+)"),
    amd.ASSEMBLY: re.compile(r"\.max_flat_workgroup_size: +(\d+)"),
}
_VECTOR = re.compile(r"(?<![\w.$@])v(?:(\d+)\b|\[\d+:(\d+)\])")
_ACCUMULATOR = re.compile(r"(?<![\w.$@])a(?:(\d+)\b|\[\d+:(\d+)\])")
_DECLARED = re.compile(r"\.amdhsa_(next_free_vgpr|accum_offset) (\d+)$")
_FOR_THE_CODE = ("tensordesc_meta", "global_scratch_size", "global_scratch_align", "profile_scratch_size")
"""What a launch gives to the code besides arguments."""


def violations(stage: str, texts: Sides[Sequence[str]], metadata: Sides[Metadata]) -> tuple[Hazard, ...]:
    """What head's launch or header says, and head's code contradicts, where base's does not."""
    base, head = (dict(_violations(stage, *side)) for side in texts.zip(metadata))
    return tuple(
        Hazard(kind=HazardKind.ACCESS, what=what, witness=Witness(base=(), head=lines))
        for what, lines in head.items()
        if what not in base
    )


def _violations(
    stage: str, text: Sequence[str], metadata: Metadata
) -> Iterator[tuple[str, tuple[CodeLine, ...]]]:
    warps, size = (
        metadata.get("num_warps"),
        metadata.get("warp_size", 32 if stage == nvidia.ASSEMBLY else None),
    )
    if isinstance(warps, int) and isinstance(size, int) and (pattern := _THREADS.get(stage)):
        for number, line in enumerate(text, 1):
            if (found := pattern.search(line)) and int(found[1]) != warps * size * _extra(metadata):
                what = f"is launched with {warps} warps of {size}, and its code is for {found[1]} threads"
                yield what, (CodeLine(number=number, text=line),)


def of_registers(stage: str, texts: Sides[Sequence[str]]) -> Iterator[Hazard]:
    """Headers of head that reserve fewer registers than its code names, where base's do not."""
    if stage == amd.ASSEMBLY:
        base, head = (dict(_of_registers(text)) for text in texts)
        for what in head.keys() - base.keys():
            yield Hazard(kind=HazardKind.ACCESS, what=what, witness=Witness(base=(), head=head[what]))


def _extra(metadata: Metadata) -> float:
    """Warps beside those of the option: warp specialization adds some."""
    total, warps = metadata.get("total_num_warps"), metadata.get("num_warps")
    return total / warps if isinstance(total, int) and isinstance(warps, int) and total else 1


def _of_registers(text: Sequence[str]) -> Iterator[tuple[str, tuple[CodeLine, ...]]]:
    """The header of a kernel reserves registers; code that uses more of them breaks."""
    declared = {
        found[1]: (int(found[2]), n) for n, line in enumerate(text, 1) if (found := _DECLARED.match(line))
    }
    if "next_free_vgpr" not in declared:
        return
    used, at = _highest(_VECTOR, text)
    accumulators, at_accumulator = _highest(_ACCUMULATOR, text)
    whole, line = declared["next_free_vgpr"]
    begin, begin_line = declared.get("accum_offset", (whole, line))
    rows = [(used, at, min(whole, begin) if accumulators else whole, line, "v")]
    if "accum_offset" in declared:
        rows = [(used, at, max(begin, 0) if accumulators or begin < whole else whole, begin_line, "v")]
        rows += [(accumulators + begin, at_accumulator, whole, line, "a")] if accumulators else []
    for count, place, limit, where, kind in rows:
        if count > limit:
            lines = tuple(CodeLine(number=n, text=text[n - 1][:200]) for n in sorted({place, where}))
            yield f"reserves {limit} registers for `{kind}` and uses {count}", lines


def _highest(pattern: re.Pattern[str], text: Sequence[str]) -> tuple[int, int]:
    """One more than the highest register that code names, and the line."""
    found = (0, 0)
    for number, line in enumerate(text, 1):
        if line.startswith((".", "-", "amdhsa")):
            continue
        for single, last in pattern.findall(line):
            found = max(found, (int(single or last) + 1, number))
    return found


def _given(metadata: Metadata, name: str) -> object:
    """What is not there, or is of no bytes, is the same nothing: older releases have no scratch memory."""
    is_empty = name == "global_scratch_align" and not metadata.get("global_scratch_size")
    return None if is_empty else metadata.get(name) or None


def doubts(metadata: Sides[Metadata]) -> NotShown | None:
    """What the launch passes otherwise, and the code may rely on."""
    base, head = metadata
    names = [name for name in _FOR_THE_CODE if _given(base, name) != _given(head, name)]
    before, after = base.get("shared"), head.get("shared")
    if isinstance(before, int) and isinstance(after, int) and after < before:
        names.append("shared")
    if not names:
        return None
    words = ", ".join(f"{name} {base.get(name)} → {head.get(name)}"[:80] for name in names)
    return NotShown(reason="the launch passes something else to the code", detail=words)
