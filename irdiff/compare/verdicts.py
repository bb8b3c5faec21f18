"""Stage statuses and the verdict of one case: earned from the machine code up. Pure.

A verdict that calls the code the same rests on one of two kinds of evidence; there is no third.

*Binaries*: both sides have one, and its executable contract is the same (`backends.machine_code`).

*The last texts*: neither side has a binary that is known here, both end in the same stage, and its text has
the same canonical form. The normalizers only rename, renumber, reorder what has no order and drop what cannot
reach the machine code.

Anything else (a side that ends in another stage, or has no binary where the other has one) is *not compared*:
the case counts as changed, as it does where what the launch passes on differs, and its finding says so.
`changed`, since every count, report and rule already treats it as not the same; `failing` and `broken` would
say that something did not compile, which is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from irdiff.backends.stages import ASSEMBLIES, BINARIES, MACHINE_CODE, reported
from irdiff.findings import Finding, FindingKind
from irdiff.ir.canonical import TextEquality
from irdiff.model import Compiled, StageStatus, Verdict
from irdiff.stages import Stage

NO_LINKER = "no-linker"
"""The note of a side that has its code as text, and whose binary could not be linked."""

_NOT_TEXTS = frozenset({Stage.SOURCE, *BINARIES})
_SAME = frozenset({StageStatus.IDENTICAL, StageStatus.EQUIVALENT})
Statuses = Mapping[str, StageStatus]


def compare_texts(
    base: Compiled, head: Compiled, compare: Callable[[str, str, str], TextEquality]
) -> tuple[Statuses, tuple[Finding, ...]]:
    """Status of every text stage. `compare` takes a stage and two different digests."""
    stages: dict[str, StageStatus] = {}
    findings: list[Finding] = []
    for name in dict.fromkeys((*base.artifacts, *head.artifacts)):
        ours, theirs = base.artifacts.get(name), head.artifacts.get(name)
        if name in _NOT_TEXTS:
            continue
        if ours is None or theirs is None:
            stages[name] = StageStatus.ABSENT
        elif ours.digest == theirs.digest:
            stages[name] = StageStatus.IDENTICAL
        else:
            result = compare(name, ours.digest, theirs.digest)
            stages[name] = StageStatus.EQUIVALENT if result.equal else StageStatus.CHANGED
            findings.extend(result.findings)
    return stages, tuple(dict.fromkeys(findings))


def with_stages(side: Compiled, other: Compiled, wanted: Collection[str]) -> Compiled:
    """A side with the stages that a user wants to see and those that the verdict rests on."""
    kept = {*wanted, *BINARIES, *MACHINE_CODE, *ASSEMBLIES, _ends_in(side), _ends_in(other)}
    return replace(
        side, artifacts={name: artifact for name, artifact in side.artifacts.items() if name in kept}
    )


# evidence


@dataclass(frozen=True, kw_only=True)
class CodeEquality:
    """The evidence of a verdict."""

    same: bool | None
    """True if the code is the same; None if it was not compared."""
    statuses: Statuses
    """The status of the machine code. It replaces that of the text with the same name."""
    findings: tuple[Finding, ...]


def shared_binary(base: Compiled, head: Compiled) -> str | None:
    """The kind of binary that both sides have."""
    return next((name for name in BINARIES if name in base.artifacts and name in head.artifacts), None)


def of_binaries(binary: str, texts: Statuses, findings: tuple[Finding, ...], *, same: bool) -> CodeEquality:
    stage = reported(binary)
    status = texts.get(stage, StageStatus.EQUIVALENT) if same else StageStatus.CHANGED
    return CodeEquality(same=same, statuses={stage: status}, findings=findings)


def of_last_texts(base: Compiled, head: Compiled, texts: Statuses) -> CodeEquality:
    """Compares two sides that have no kind of binary in common."""
    unlinked = NO_LINKER in (*base.notes, *head.notes)
    ends = [_last_text(side) if unlinked else _ends_in(side) for side in (base, head)]
    if ends[0] == ends[1] and ends[0] and ends[0] not in _NOT_TEXTS:
        finding = Finding(FindingKind.MACHINE_CODE_AS_TEXT, NO_LINKER if unlinked else "no-binary")
        return CodeEquality(same=texts.get(ends[0]) in _SAME, statuses={}, findings=(finding,))
    # what the text of that name says does not hold for the machine code
    absent = {reported(end): StageStatus.ABSENT for end in ends if end in BINARIES}
    finding = Finding(FindingKind.NOT_COMPARED, ",".join(end or "nothing" for end in ends))
    return CodeEquality(same=None, statuses=absent, findings=(finding,))


def _ends_in(side: Compiled) -> str:
    return next(reversed(list(side.artifacts)), "")


def _last_text(side: Compiled) -> str:
    return next((name for name in reversed(list(side.artifacts)) if name not in _NOT_TEXTS), "")


def same_assembler(base: Compiled, head: Compiled) -> bool:
    """Returns True if both sides run one assembler with the same flags."""
    ours, theirs = base.assembler, head.assembler
    return ours is not None and theirs is not None and ours.digest is not None and ours == theirs


# the verdict


def made_of_binaries(base: Compiled, head: Compiled) -> tuple[str, ...]:
    """Stages that follow the binary on a side: they are loaded in its place, or launch it, so equal machine
    code does not absorb what differs there.
    """
    programs: dict[str, None] = {}
    for side in (base, head):
        names = list(side.artifacts)
        last = max((place for place, name in enumerate(names) if name in BINARIES), default=len(names))
        programs.update(dict.fromkeys(names[last + 1 :]))
    return tuple(programs)


def judge(
    texts: Statuses, evidence: CodeEquality, *, launcher_args_differ: bool, after: Collection[str] = ()
) -> tuple[Verdict, Statuses, str | None]:
    """Verdict, all stage statuses, and the first changed stage.

    texts: with the status of the launch. launcher_args_differ: whether the launcher receives something else.
    after: as of `made_of_binaries`.
    """
    stages = {**texts, **evidence.statuses}
    first = next((name for name, status in stages.items() if status is StageStatus.CHANGED), None)
    launch_differs = launcher_args_differ or stages.get(Stage.LAUNCH) is StageStatus.CHANGED
    differing = [name for name in after if name in stages and stages[name] not in _SAME]
    if evidence.same and not launch_differs and not differing:
        return (Verdict.IR_ONLY if first else Verdict.UNCHANGED), stages, first
    if evidence.same is None:
        absent = (name for name, status in stages.items() if status is StageStatus.ABSENT)
        first = first or next(absent, "code")
    first = first or next(iter(differing), Stage.LAUNCH)
    if first == Stage.LAUNCH:
        stages[first] = StageStatus.CHANGED
    return Verdict.CHANGED, stages, first
