"""Stage statuses and the verdict of one case: earned from the machine code up. Pure.

The rules, and why none of them can hide a change:

*Same bytes* are the same. *Same canonical text* is `equivalent`: the normalizers only rename, renumber,
reorder what has no order and drop what cannot reach the machine code.

*By rule*: where both sides' PTX is equivalent with the same header, and the same `ptxas` binary is given the
same flags, and the launch passes the same (shared memory, warps, clusters, scratch), the machine code
is the same: `ptxas` is a function of those. Running it twice would only import its own noise.

*Changed* means that the executing sections of the binary differ, or what the launch passes to them.
Where neither binary nor by-rule holds, the text of the last stage decides, and the case says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from irdiff.model import Artifact, Compiled, StageStatus, Verdict

MACHINE_STAGES = {"cubin": "sass", "hsaco": "amdgcn"}
"""Binary artifact → the stage that its machine code is reported under."""

_NOT_COMPARED = frozenset({"source", "cubin", "hsaco"})
_LAUNCH_METADATA = (
    "shared",
    "num_warps",
    "num_ctas",
    "cluster_dims",
    "tmem_size",
    "global_scratch_size",
    "global_scratch_align",
    "profile_scratch_size",
    "profile_scratch_align",
    "launch_cooperative_grid",
    "launch_pdl",
    "tensordesc_meta",
)
_NEUTRAL: Mapping[str, object] = {
    "num_ctas": 1,
    "cluster_dims": [1, 1, 1],
    "global_scratch_align": 1,
    "profile_scratch_align": 1,
}


@dataclass(frozen=True, kw_only=True)
class TextComparison:
    """What the normalizers say of two texts of one stage."""

    equal: bool
    header_equal: bool
    findings: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class StageComparison:
    """The stages of one case, as far as texts go, and what is needed to judge the machine code."""

    stages: Mapping[str, StageStatus]
    findings: tuple[str, ...]
    same_assembler_input: bool


def compare_texts(
    base: Compiled,
    head: Compiled,
    equivalent: Callable[[str, Artifact, Artifact], TextComparison],
) -> StageComparison:
    """Status of every text stage. `equivalent` is asked only where bytes differ."""
    stages: dict[str, StageStatus] = {}
    findings: list[str] = []
    same_input = False
    for name in _stage_names(base, head):
        ours, theirs = base.artifacts.get(name), head.artifacts.get(name)
        if ours is None or theirs is None:
            stages[name] = StageStatus.ABSENT
        elif ours.digest == theirs.digest:
            stages[name] = StageStatus.IDENTICAL
            same_input = same_input or name == "ptx"
        else:
            result = equivalent(name, ours, theirs)
            stages[name] = StageStatus.EQUIVALENT if result.equal else StageStatus.CHANGED
            findings.extend(result.findings)
            same_input = same_input or (name == "ptx" and result.equal and result.header_equal)
    return StageComparison(
        stages=stages, findings=tuple(dict.fromkeys(findings)), same_assembler_input=same_input
    )


def _stage_names(base: Compiled, head: Compiled) -> list[str]:
    names = [name for name in base.artifacts if name not in _NOT_COMPARED]
    return names + [name for name in head.artifacts if name not in _NOT_COMPARED and name not in names]


def differing_launch(base: Mapping[str, object], head: Mapping[str, object]) -> tuple[str, ...]:
    """Names of the metadata entries that a launch reads and that differ.

    An entry that one side's release does not write counts as its neutral value.
    """
    return tuple(name for name in _LAUNCH_METADATA if _passed(base, name) != _passed(head, name))


def _passed(metadata: Mapping[str, object], name: str) -> object:
    value = metadata.get(name)
    neutral = _NEUTRAL.get(name, 0)
    return neutral if value is None or value is False or value == [] else value


def by_rule(
    base: Compiled,
    head: Compiled,
    texts: StageComparison,
    base_programs: Mapping[str, str],
    head_programs: Mapping[str, str],
) -> bool:
    """Whether the machine code is the same by rule (see the module's text)."""
    if not texts.same_assembler_input or not base.assembler_flags or not head.assembler_flags:
        return False
    ours = base_programs.get(base.assembler_flags[0])
    theirs = head_programs.get(head.assembler_flags[0])
    return ours is not None and ours == theirs and base.assembler_flags[1:] == head.assembler_flags[1:]


@dataclass(frozen=True, kw_only=True)
class MachineCode:
    """How the machine code compares: the stage it is reported under; None where there was none to compare."""

    stage: str | None
    same: bool | None


def judge(
    texts: StageComparison, machine: MachineCode, *, launch_differs: bool
) -> tuple[Verdict, Mapping[str, StageStatus], str | None]:
    """Verdict, all stage statuses, and the first changed stage.

    Where no machine code could be compared the last text stage decides.
    """
    stages = dict(texts.stages)
    if machine.stage:
        if machine.same is False:
            stages[machine.stage] = StageStatus.CHANGED
        else:
            stages.setdefault(machine.stage, StageStatus.EQUIVALENT)
    first = next((name for name, status in stages.items() if status is StageStatus.CHANGED), None)
    if machine.same is None:
        last = list(stages.values())[-1] if stages else StageStatus.ABSENT
        changed = last is StageStatus.CHANGED
    else:
        changed = not machine.same
    if changed or launch_differs:
        return Verdict.CHANGED, stages, first or "launch"
    return (Verdict.ABSORBED if first else Verdict.UNCHANGED), stages, first
