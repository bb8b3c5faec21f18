"""Cases whose code was not compared: one-sided, failed, unsupported, the same by input. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from irdiff import backends, case_ids
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
from irdiff.stages import Stage

MAX_REASON = 300
_PLACE = re.compile(r"^(?P<type>[A-Za-z_]\w*): (?:at (?P<place>\d+:\d+): ?)?(?P<rest>.*)$", re.DOTALL)
_CARET = re.compile(r"^\s*\^[\s^~]*$")
_QUOTED = re.compile(r".*(?<=\s)\^(?:\s|$)", re.DOTALL)


def blank(pair: Pair, verdict: Verdict) -> Case:
    """A case of which nothing but its verdict is known."""
    base, head = pair.base, pair.head
    launch = next((side for side in (head, base) if isinstance(side, Launch)), None)
    renamed_from = None
    if isinstance(base, Launch) and isinstance(head, Launch) and base.id != head.id:
        renamed_from = f"{base.id}@{pair.target.name}"
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
        launches=Sides(base=base, head=head).map(lambda side: side.key if isinstance(side, Launch) else None),
        metadata=Sides(base={}, head={}),
        compile_s=Sides(base={}, head={}),
        renamed_from=renamed_from,
        group=None,
        edit=None,
        summary=None,
    )


def same_input(pair: Pair) -> Case:
    """The same compiler on the same input: nothing was compiled, and no stage below the launch is called
    compared.
    """
    stages: dict[str, StageStatus] = dict.fromkeys(
        backends.of(pair.target.backend).STAGES, StageStatus.ABSENT
    )
    status = launch_status(pair)
    differs = status is StageStatus.CHANGED
    return replace(
        blank(pair, Verdict.CHANGED if differs else Verdict.UNCHANGED),
        stages={**stages, Stage.LAUNCH: status},
        findings=(Finding(FindingKind.NOT_COMPILED, "same-input"),),
        origin=origin(Stage.LAUNCH) if differs else None,
        artifacts=Sides(base=launched(pair.base), head=launched(pair.head)),
    )


def launch_status(pair: Pair) -> StageStatus:
    """Whether the program launches something else, or in another order."""
    base, head = (
        side.launched.digest if isinstance(side, Launch) else None for side in (pair.base, pair.head)
    )
    return StageStatus.CHANGED if base != head or pair.moved else StageStatus.IDENTICAL


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
    named = [(name, failure) for name, failure in failures.items() if failure]
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
    ended = (failure for failure in failures if is_program(case.workload) and failure.stage == "capture")
    return next(ended, None)


def is_program(workload: str) -> bool:
    """Whether it runs a program of the repository."""
    return case_ids.parse(workload).family == case_ids.PROGRAMS


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
    alone = head or base
    if alone and alone.stage == "capture" and is_program(pair.workload):  # the other side's came to its end
        return Verdict.BROKEN if head else Verdict.FIXED
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
    reason on the lines behind it. Where it gives none (`tl.static_assert` without a message) the marked line
    is the reason. At most MAX_REASON characters, on one line; never empty where the message is not.
    """
    found = _PLACE.match(failure.message)
    if failure.kind is not FailureKind.ERROR or found is None or not found["place"]:
        return failure.message[:MAX_REASON]
    words = _behind_quotation(failure.stderr, found["type"]) or _QUOTED.sub("", found["rest"]).strip()
    if not words:
        return failure.message[:MAX_REASON]
    return f"{found['type']}: {words} (at {found['place']})"[:MAX_REASON]


def _behind_quotation(stderr: str, name: str) -> str:
    """The last line of the exception's text, or the line above its mark."""
    lines = stderr.splitlines()
    starts = [n for n, line in enumerate(lines) if re.match(rf"(?:\w+\.)*{name}: at \d+:\d+:", line)]
    text = lines[starts[-1] + 1 :] if starts else []
    marks = [n for n, line in enumerate(text) if _CARET.match(line)]
    if not marks:
        return ""
    behind = [line.strip() for line in text[marks[-1] + 1 :] if line.strip()]
    return behind[-1] if behind else text[marks[-1] - 1].strip() if marks[-1] else ""
