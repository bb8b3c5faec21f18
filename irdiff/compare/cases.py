"""Cases that were not compared in code: one-sided, failed, unsupported, the same by input. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from irdiff.compare.reasons import reason
from irdiff.findings import Finding, FindingKind
from irdiff.model import (
    Artifact,
    CaptureFailure,
    Case,
    Compiled,
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
from irdiff.stages import COMPARED, Stage


def blank(pair: Pair, verdict: Verdict) -> Case:
    """A case of which nothing but its verdict is known."""
    launch = next((side for side in (pair.head, pair.base) if isinstance(side, Launch)), None)
    return Case(
        id=pair.id,
        workload=pair.workload,
        kernel=launch.kernel if launch else "",
        target=pair.target.name,
        tier=launch.tier if launch else "core",
        verdict=verdict,
        origin=None,
        stages={},
        facts=Sides(base={}, head={}),
        findings=(),
        nondeterministic=(),
        error=None,
        failures=Sides(base=None, head=None),
        artifacts=Sides(base={}, head={}),
        launches=Sides(base=_key(pair.base), head=_key(pair.head)),
        metadata=Sides(base={}, head={}),
        compile_s=Sides(base={}, head={}),
        renamed_from=_renamed_from(pair),
        group=None,
        edit=None,
        summary=None,
    )


def _renamed_from(pair: Pair) -> str | None:
    if isinstance(pair.base, Launch) and isinstance(pair.head, Launch) and pair.base.id != pair.head.id:
        return f"{pair.base.id}@{pair.target.name}"
    return None


def _key(side: Launch | CaptureFailure | None) -> str | None:
    return side.key if isinstance(side, Launch) else None


def same_input(pair: Pair) -> Case:
    """The same compiler on the same input: nothing was compiled, and no stage below the launch is called
    compared.
    """
    differs = launch_differs(pair)
    stages: dict[str, StageStatus] = dict.fromkeys(COMPARED.get(pair.target.backend, ()), StageStatus.ABSENT)
    status = StageStatus.CHANGED if differs else StageStatus.IDENTICAL
    return replace(
        blank(pair, Verdict.CHANGED if differs else Verdict.UNCHANGED),
        stages={**stages, Stage.LAUNCH: status},
        findings=(Finding(FindingKind.NOT_COMPILED, "same-input"),),
        origin=origin(Stage.LAUNCH) if differs else None,
        artifacts=Sides(base=launched(pair.base), head=launched(pair.head)),
    )


def launch_differs(pair: Pair) -> bool:
    """Whether the program launches something else, or in another order."""
    base, head = (
        side.launched.digest if isinstance(side, Launch) else None for side in (pair.base, pair.head)
    )
    return base != head or pair.moved


def artifacts(pair: Pair, outcomes: Sides[Outcome] | Sides[Compiled]) -> Sides[Mapping[str, Artifact]]:
    """What is launched, and what became of it."""
    return Sides(
        base={**launched(pair.base), **outcomes.base.artifacts},
        head={**launched(pair.head), **outcomes.head.artifacts},
    )


def launched(side: Launch | CaptureFailure | None) -> Mapping[str, Artifact]:
    """The artifact of the stage `launch`."""
    return {Stage.LAUNCH: side.launched} if isinstance(side, Launch) else {}


def one_sided(pair: Pair, alone: Sides[Failure | None]) -> Case:
    """A case that at least one side did not launch; `alone` says why the other does not compile."""
    failures = Sides(
        base=alone.base or _capture_failure(pair.base, pair.target, supported=pair.supported.base),
        head=alone.head or _capture_failure(pair.head, pair.target, supported=pair.supported.head),
    )
    if failures.base is None and failures.head is None:
        return blank(pair, Verdict.ADDED if pair.base is None else Verdict.REMOVED)
    return failed(pair, failures)


def failed(pair: Pair, failures: Sides[Failure | None]) -> Case:
    """A case that did not compile on at least one side."""
    verdict = _failed_verdict(pair, failures)
    named = [
        (name, failure) for name, failure in (("base", failures.base), ("head", failures.head)) if failure
    ]
    loud = verdict in (Verdict.BROKEN, Verdict.FIXED)
    return replace(
        blank(pair, verdict),
        error="; ".join(f"{name}: {reason(failure)}" for name, failure in named),
        failures=failures,
        origin=origin(named[-1][1].stage) if loud else None,
    )


def failed_program(case: Case) -> Failure | None:
    """How the program ended, where the case stands for what it would have launched had it come to its end."""
    failures = (side for side in (case.failures.head, case.failures.base) if side)
    is_program = case.workload.startswith("program/")
    return next((failure for failure in failures if is_program and failure.stage == "capture"), None)


def not_compared(case: Case) -> bool:
    """Whether it counts as changed because its code was not compared (see `verdicts`)."""
    return any(finding.kind is FindingKind.NOT_COMPARED for finding in case.findings)


def origin(stage: str) -> Origin:
    """An origin of which only the stage is known yet."""
    return Origin(stage=stage, pass_name=None, masked=(), charged=(), note="")


def _failed_verdict(pair: Pair, failures: Sides[Failure | None]) -> Verdict:
    base, head = failures.base, failures.head
    if base and head:
        both_unsupported = base.kind is head.kind is FailureKind.UNSUPPORTED
        return Verdict.UNSUPPORTED if both_unsupported else Verdict.FAILING
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
            signal=None,
            stderr="",
        )
    return None
