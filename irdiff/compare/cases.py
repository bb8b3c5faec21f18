"""A compared case of what its comparison says; cases whose code was not compared: one-sided, failed,
unsupported, the same by input. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from irdiff import backends, case_ids
from irdiff.capture.program_failures import ENDED_EARLY
from irdiff.findings import Finding, FindingKind
from irdiff.model import (
    Artifact,
    CaptureFailure,
    ComparedCase,
    Compiled,
    Fact,
    Failure,
    FailureKind,
    Launch,
    Origin,
    Outcome,
    Pair,
    Sides,
    StageStatus,
    Target,
    Verdict,
)
from irdiff.stages import Stage

MAX_REASON = 300
_PLACE = re.compile(r"^(?P<type>[A-Za-z_]\w*): (?:at (?P<place>\d+:\d+): ?)?(?P<rest>.*)$", re.DOTALL)
_CARET = re.compile(r"^\s*\^[\s^~]*$")
_CAUSED = "\nThe above exception was the direct cause of the following exception:"
_TRACEBACK = "Traceback (most recent call last):"
_EXCEPTION = re.compile(r"^((?:\w+\.)*\w*(?:Error|Exception)(?:: .+|\(.*\))?)$", re.MULTILINE)
_QUOTED = re.compile(r".*(?<=\s)\^(?:\s|$)", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class CodeComparison:
    verdict: Verdict
    begins: str | None
    """The first changed stage, or the one in which a side failed."""
    stages: Mapping[str, StageStatus]
    findings: tuple[Finding, ...]
    facts: Sides[Mapping[str, Fact]]
    failures: Sides[Failure | None]


NO_FACTS: Sides[Mapping[str, Fact]] = Sides(base={}, head={})
_NO_FAILURES: Sides[Failure | None] = Sides(base=None, head=None)


@dataclass(frozen=True, kw_only=True)
class Made:
    """The artifacts, metadata and compile times of both compilations of a case."""

    artifacts: Sides[Mapping[str, Artifact]]
    metadata: Sides[Mapping[str, object]]
    compile_s: Sides[Mapping[str, float]]


def made(pair: Pair, outcomes: Sides[Outcome | None], verdict: Verdict) -> Made:
    """Leaves out a side that stands alone and is not new, and the metadata if no machine code was
    compared.
    """
    captured = Sides(base=pair.base, head=pair.head)
    shown = verdict is Verdict.ADDED or all(isinstance(side, Launch) for side in captured)
    has_metadata = verdict in (Verdict.CHANGED, Verdict.IR_ONLY, Verdict.ADDED)
    return Made(
        artifacts=captured.zip(outcomes).map(
            lambda side: {**_launched(side[0]), **(side[1].artifacts if side[1] else {})} if shown else {}
        ),
        metadata=outcomes.map(
            lambda side: side.metadata if has_metadata and isinstance(side, Compiled) else {}
        ),
        compile_s=outcomes.map(lambda side: side.stage_times_s if shown and side else {}),
    )


def compared(pair: Pair, comparison: CodeComparison, outputs: Made, edit: str | None) -> ComparedCase:
    base, head = pair.launches
    launch = head or base
    is_renamed = base and head and base.id != head.id
    named = [f"{name}: {reason(failure)}" for name, failure in comparison.failures.items() if failure]
    return ComparedCase(
        id=pair.id,
        workload=pair.workload,
        kernel=launch.kernel if launch else "",
        target=pair.target.name,
        tier=launch.tier if launch else "core",
        verdict=comparison.verdict,
        origin=origin(comparison.begins) if comparison.begins else None,
        stages=comparison.stages,
        facts=comparison.facts,
        findings=comparison.findings,
        error="; ".join(named) or None,
        failures=comparison.failures,
        artifacts=outputs.artifacts,
        launches=pair.launches.map(lambda side: side.key if side else None),
        metadata=outputs.metadata,
        compile_s=outputs.compile_s,
        renamed_from=f"{base.id}@{pair.target.name}" if base and is_renamed else None,
        edit=edit,
    )


def same_input(pair: Pair) -> CodeComparison:
    """Makes the comparison of a case that one compiler gets with the same input on both sides. Nothing was
    compiled, so no stage below the launch counts as compared.
    """
    stages: dict[str, StageStatus] = dict.fromkeys(
        backends.of(pair.target.backend).STAGES, StageStatus.ABSENT
    )
    status = launch_status(pair)
    differs = status is StageStatus.CHANGED
    return CodeComparison(
        verdict=Verdict.CHANGED if differs else Verdict.UNCHANGED,
        begins=Stage.LAUNCH if differs else None,
        stages={**stages, Stage.LAUNCH: status},
        findings=(Finding(FindingKind.NOT_COMPILED, "same-input"), *launch_findings(pair)),
        facts=NO_FACTS,
        failures=_NO_FAILURES,
    )


def launch_status(pair: Pair) -> StageStatus:
    """Compares what the program launches, and in which order. A launch that irdiff cannot read is never the
    same.
    """
    base, head = (
        side.launched.digest if isinstance(side, Launch) else None for side in (pair.base, pair.head)
    )
    is_same = base == head and not launch_findings(pair)
    return StageStatus.IDENTICAL if is_same else StageStatus.CHANGED


def launch_findings(pair: Pair) -> tuple[Finding, ...]:
    """Findings where a side launches in a way that irdiff cannot read, or the calls have another order."""
    clauses = [words for side in pair.launches if side for words in side.unseen]
    order = (Finding(FindingKind.CALLED_IN_ANOTHER_ORDER),) if pair.moved else ()
    return (
        *(Finding(FindingKind.LAUNCH_NOT_COMPARED, words) for words in dict.fromkeys(clauses)),
        *order,
    )


def _launched(side: Launch | CaptureFailure | None) -> Mapping[str, Artifact]:
    return {Stage.LAUNCH: side.launched} if isinstance(side, Launch) else {}


def one_sided(pair: Pair, alone: Sides[Failure | None], facts: Mapping[str, Fact]) -> CodeComparison:
    """A case that at least one side did not launch; `alone` says why the other does not compile, and `facts`
    are those of head.
    """
    failures = Sides(
        base=alone.base or _capture_failure(pair.base, pair.target, supported=pair.supported.base),
        head=alone.head or _capture_failure(pair.head, pair.target, supported=pair.supported.head),
    )
    if failures.base or failures.head:
        return failed(pair, failures)
    is_new = pair.base is None
    return CodeComparison(
        verdict=Verdict.ADDED if is_new else Verdict.REMOVED,
        begins=None,
        stages={},
        findings=(),
        facts=Sides(base={}, head=facts if is_new else {}),
        failures=failures,
    )


def failed(pair: Pair, failures: Sides[Failure | None], findings: tuple[Finding, ...] = ()) -> CodeComparison:
    """A case that did not compile on at least one side."""
    verdict = _failed_verdict(pair, failures)
    loud = verdict in (Verdict.BROKEN, Verdict.FIXED)
    stages = [failure.stage for failure in failures if failure]
    return CodeComparison(
        verdict=verdict,
        begins=stages[-1] if loud else None,
        stages={},
        findings=findings,
        facts=NO_FACTS,
        failures=failures,
    )


def failed_program(case: ComparedCase) -> Failure | None:
    """Returns the failure of a program that ended early, if the case stands for the launches that it never
    reached.
    """
    if not case_ids.is_program(case.workload):
        return None
    failures = (side for side in (case.failures.head, case.failures.base) if side)
    return next((failure for failure in failures if failure.stage == "capture"), None)


def not_compared(case: ComparedCase) -> bool:
    """Returns True if the case counts as changed because its code was not compared (see `verdicts`)."""
    return any(finding.kind is FindingKind.NOT_COMPARED for finding in case.findings)


def unseen_launch(case: ComparedCase) -> str:
    """The part of its launch that irdiff cannot read, as a clause; empty if it reads all."""
    clauses = [finding.detail for finding in case.findings if finding.kind is FindingKind.LAUNCH_NOT_COMPARED]
    return ", and ".join(clauses)


def origin(stage: str) -> Origin:
    """An origin of which only the stage is known yet."""
    return Origin(stage=stage, pass_name=None, masked=(), charged=(), note="")


def _failed_verdict(pair: Pair, failures: Sides[Failure | None]) -> Verdict:
    base, head = failures.base, failures.head
    if base and head:
        both_unsupported = base.kind is head.kind is FailureKind.UNSUPPORTED
        return Verdict.UNSUPPORTED if both_unsupported else Verdict.FAILING
    alone = head or base
    if alone and alone.stage == "capture" and case_ids.is_program(pair.workload):
        return Verdict.BROKEN if head else Verdict.FIXED  # the other side's came to its end
    if head:  # a case that base does not have, and that head does not compile: no side has code
        return Verdict.FAILING if pair.base is None else Verdict.BROKEN
    return Verdict.REMOVED if pair.head is None else Verdict.FIXED


def _capture_failure(
    captured: Launch | CaptureFailure | None, target: Target, *, supported: bool
) -> Failure | None:
    if isinstance(captured, CaptureFailure):
        return captured.failure
    if captured is None and not supported:
        return Failure(
            kind=FailureKind.UNSUPPORTED,
            stage="capture",
            message=f"the toolchain has no backend {target.backend!r}",
        )
    return None


def reason(failure: Failure) -> str:
    """Why a side failed: what an exception says, without the source that it quotes.

    Triton's compiler quotes the kernel up to the place of an error, marks the place with `^`, and gives the
    reason on the lines behind it. Where it gives none, the exception that caused it and the marked line are
    the reason. An error in a function that the kernel calls is quoted once for each caller: the innermost
    counts. At most MAX_REASON characters, on one line; never empty where the message is not.
    """
    message = failure.message.removeprefix(ENDED_EARLY)
    place_match = _PLACE.match(message)
    if failure.kind is not FailureKind.ERROR or place_match is None or not place_match["place"]:
        return message[:MAX_REASON]
    quoted = _innermost(failure.stderr, place_match["type"])
    words = quoted.behind if quoted else _QUOTED.sub("", place_match["rest"]).strip()
    if not words:
        return message[:MAX_REASON]
    place = quoted.place if quoted else place_match["place"]
    return f"{place_match['type']}: {words} (at {place})"[:MAX_REASON]


class _Quoted(NamedTuple):
    behind: str
    """The text behind the mark: finally the reason why the side failed."""
    marked: str
    """The line above the mark."""
    place: str
    """`12:4`, a line of the function and a column."""


def _innermost(stderr: str, name: str) -> _Quoted | None:
    """Follows the causes of the last exception to the first one of that name that quotes source; None where
    none has its mark.
    """
    innermost, cause = None, ""
    for part in reversed(stderr.split(_CAUSED)):
        quoted = _quoted(part, name)
        if quoted is None:
            cause = next(reversed(_EXCEPTION.findall(part)), "") if innermost else ""
            break
        innermost = quoted
    if innermost is None or innermost.behind:
        return innermost and _Quoted(innermost.behind, "", innermost.place)
    return innermost._replace(behind=", in ".join(filter(None, (cause, innermost.marked))))


def _quoted(text: str, name: str) -> _Quoted | None:
    """The exception of that name that a text ends with."""
    starts = list(re.finditer(rf"^(?:\w+\.)*{name}: at (\d+:\d+):", text, re.MULTILINE))
    lines = text[starts[-1].end() :].splitlines() if starts else []
    marks = [n for n, line in enumerate(lines) if _CARET.match(line)]
    if not marks or not marks[-1] or _TRACEBACK in lines[marks[-1] :]:
        return None
    behind = [line.strip() for line in lines[marks[-1] + 1 :] if line.strip()]
    return _Quoted(behind[-1] if behind else "", lines[marks[-1] - 1].strip(), starts[-1][1])
