"""Stage statuses and the verdict of one case: earned from the machine code up. Pure.

A verdict that calls the code the same rests on one of two kinds of evidence; there is no third.

*Binaries*: both sides have one, and its executable contract is the same (`binaries.machine_code`).

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
from typing import assert_never

from irdiff.findings import Finding, FindingKind
from irdiff.model import Compiled, StageStatus, Verdict
from irdiff.stages import MACHINE_STAGES, Stage

NO_LINKER = "no-linker"
"""The note of a side that has its code as text, and whose binary could not be linked."""

_NOT_TEXTS = frozenset({Stage.SOURCE, *MACHINE_STAGES})
_SAME = frozenset({StageStatus.IDENTICAL, StageStatus.EQUIVALENT})


@dataclass(frozen=True, kw_only=True)
class TextComparison:
    """What the normalizers say of two texts of one stage."""

    equal: bool
    header_equal: bool
    findings: tuple[Finding, ...]


@dataclass(frozen=True, kw_only=True)
class StageComparison:
    """The text stages of one case, and what is needed to judge its machine code."""

    stages: Mapping[str, StageStatus]
    findings: tuple[Finding, ...]


def compare_texts(
    base: Compiled,
    head: Compiled,
    equivalent: Callable[[str, str, str], TextComparison],
) -> StageComparison:
    """Status of every text stage. `equivalent` is given a stage and two digests, where these differ."""
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
            result = equivalent(name, ours.digest, theirs.digest)
            stages[name] = StageStatus.EQUIVALENT if result.equal else StageStatus.CHANGED
            findings.extend(result.findings)
    return StageComparison(stages=stages, findings=tuple(dict.fromkeys(findings)))


def with_launch(texts: StageComparison, *, differs: bool) -> StageComparison:
    """With the status of the launch, which is the first stage."""
    status = StageStatus.CHANGED if differs else StageStatus.IDENTICAL
    return replace(texts, stages={Stage.LAUNCH: status, **texts.stages})


def with_stages(base: Compiled, head: Compiled, wanted: Collection[str]) -> tuple[Compiled, Compiled]:
    """Both sides with the stages that a user wants to see and those that the verdict rests on."""
    kept = {*wanted, *MACHINE_STAGES, Stage.PTX, *(_ends_in(side) for side in (base, head))}
    ours, theirs = (
        replace(side, artifacts={name: row for name, row in side.artifacts.items() if name in kept})
        for side in (base, head)
    )
    return ours, theirs


# evidence


@dataclass(frozen=True, kw_only=True)
class Binaries:
    """Both sides have a binary of one kind; `stage` is what its machine code is reported under."""

    stage: str
    same: bool
    findings: tuple[Finding, ...]


@dataclass(frozen=True, kw_only=True)
class LastTexts:
    """Both sides end in the text of one stage."""

    stage: str
    why: str
    """Why there is no binary to compare."""


@dataclass(frozen=True, kw_only=True)
class NotCompared:
    """The two sides end in different stages."""

    base: str
    head: str


Evidence = Binaries | LastTexts | NotCompared


def shared_binary(base: Compiled, head: Compiled) -> str | None:
    """The kind of binary that both sides have."""
    return next((name for name in MACHINE_STAGES if name in base.artifacts and name in head.artifacts), None)


def without_binaries(base: Compiled, head: Compiled) -> LastTexts | NotCompared:
    """What there is to compare where no kind of binary is on both sides."""
    unlinked = NO_LINKER in (*base.notes, *head.notes)
    ours, theirs = (_last_text(side) if unlinked else _ends_in(side) for side in (base, head))
    if ours == theirs and ours and ours not in _NOT_TEXTS:
        return LastTexts(stage=ours, why=NO_LINKER if unlinked else "no-binary")
    return NotCompared(base=ours or "nothing", head=theirs or "nothing")


def _ends_in(side: Compiled) -> str:
    return next(reversed(list(side.artifacts)), "")


def _last_text(side: Compiled) -> str:
    return next((name for name in reversed(list(side.artifacts)) if name not in _NOT_TEXTS), "")


def same_assembler(base: Compiled, head: Compiled) -> bool:
    """Whether both sides run the same `ptxas` binary with the same flags."""
    ours, theirs = base.assembler, head.assembler
    return ours is not None and theirs is not None and ours.digest is not None and ours == theirs


def findings_of(evidence: Evidence) -> tuple[Finding, ...]:
    """Each kind of evidence but binaries, which every case should have, is told by a finding."""
    match evidence:
        case Binaries():
            return evidence.findings
        case LastTexts():
            return (Finding(FindingKind.MACHINE_CODE_AS_TEXT, evidence.why),)
        case NotCompared():
            return (Finding(FindingKind.NOT_COMPARED, f"{evidence.base},{evidence.head}"),)
        case _:
            assert_never(evidence)


# the verdict


def made_of_binaries(base: Compiled, head: Compiled) -> tuple[str, ...]:
    """Stages that follow the binary on a side: they are loaded in its place, or launch it, so that no equal
    machine code absorbs what differs there.
    """
    found: dict[str, None] = {}
    for side in (base, head):
        names = list(side.artifacts)
        last = max((place for place, name in enumerate(names) if name in MACHINE_STAGES), default=len(names))
        found.update(dict.fromkeys(names[last + 1 :]))
    return tuple(found)


def judge(
    texts: StageComparison, evidence: Evidence, *, launch_differs: bool, after: Collection[str] = ()
) -> tuple[Verdict, Mapping[str, StageStatus], str | None]:
    """Verdict, all stage statuses, and the first changed stage. `after`: as of `made_of_binaries`."""
    stages = dict(texts.stages)
    launch_differs = launch_differs or stages.get(Stage.LAUNCH) is StageStatus.CHANGED
    match evidence:
        case Binaries():
            same = evidence.same
            if not same:
                stages[evidence.stage] = StageStatus.CHANGED
            stages.setdefault(evidence.stage, StageStatus.EQUIVALENT)
        case LastTexts():
            same = stages.get(evidence.stage) in _SAME
        case NotCompared():
            same = False
            for end in (evidence.base, evidence.head):
                if (
                    end in MACHINE_STAGES
                ):  # what is found in the text of that name does not hold for the machine code
                    stages[MACHINE_STAGES[end]] = StageStatus.ABSENT
        case _:
            assert_never(evidence)
    first = next((name for name, status in stages.items() if status is StageStatus.CHANGED), None)
    differing = [name for name in after if name in stages and stages[name] not in _SAME]
    if same and not launch_differs and not differing:
        return (Verdict.ABSORBED if first else Verdict.UNCHANGED), stages, first
    if isinstance(evidence, NotCompared):
        first = first or next(
            (name for name, status in stages.items() if status is StageStatus.ABSENT), "code"
        )
    first = first or next(iter(differing), Stage.LAUNCH)
    if first == Stage.LAUNCH:
        stages[first] = StageStatus.CHANGED
    return Verdict.CHANGED, stages, first
