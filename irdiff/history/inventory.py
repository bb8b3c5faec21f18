"""Compiles one version once, for its facts and cost.

A comparison keeps facts only of changed cases; a line needs them of every case. Compiled results lie in the
store, so comparing two measured versions compiles next to nothing.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from irdiff.backends.stages import ASSEMBLIES
from irdiff.compare import facts
from irdiff.compile import corpus_check
from irdiff.compile.worker_compiler import WorkerCompiler
from irdiff.config import Config
from irdiff.errors import NormalizeError
from irdiff.model import CaptureFailure, Compiled, Fact, Failed, Failure, Launch, Selection, Target
from irdiff.parallel import Report, in_parallel
from irdiff.resolve.sides import Side
from irdiff.stages import Stage
from irdiff.store import Store
from irdiff.texts import canonicalize, instruction_facts, ir_of

_UNREAD = frozenset({Stage.SOURCE, Stage.TTIR, Stage.GLIR, Stage.LLIR})
"""Texts that have no facts."""


@dataclass(frozen=True, kw_only=True)
class CompiledCase:
    id: str
    workload: str
    kernel: str
    target: str
    tier: str
    failure: Failure | None
    facts: Mapping[str, Fact]
    wall_s: Mapping[str, float]
    """By stage, as measured when the case was compiled."""
    cpu_s: Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class Inventory:
    cases: tuple[CompiledCase, ...]
    wall_s: float
    cpu_s: float
    """Processor seconds of this process and of the compilers."""
    compiled: int
    """Cases that were not in the store."""


def take(
    side: Side, targets: Sequence[Target], wanted: Selection, config: Config, report: Report
) -> Inventory:
    """A case that does not compile is a finding. Raises ToolchainError."""
    started, used = time.monotonic(), _cpu_s()
    store = Store(config.store)
    with corpus_check.opened(side, targets, wanted, config, report) as check:
        compiler = check.compiler
        jobs = [(captured, target) for target, captured in check.captured if _is_wanted(captured, wanted)]

        def compiled_case(job: tuple[Launch | CaptureFailure, Target]) -> CompiledCase:
            return _compiled(compiler, store, side, *job)

        compiled_cases = list(in_parallel(compiled_case, jobs, config.jobs + 1, "compile", report))
        reused = compiler.taken_from_store
    return Inventory(
        cases=tuple(sorted(compiled_cases, key=lambda case: case.id)),
        wall_s=round(time.monotonic() - started, 3),
        cpu_s=round(_cpu_s() - used, 3),
        compiled=len(compiled_cases) - reused,
    )


def _is_wanted(captured: Launch | CaptureFailure, wanted: Selection) -> bool:
    """Selects cases like the pairs of a comparison."""
    tier = captured.tier if isinstance(captured, Launch) else None
    return captured.expected and (not wanted.tiers or tier is None or tier in wanted.tiers)


def _compiled(
    compiler: WorkerCompiler, store: Store, side: Side, captured: Launch | CaptureFailure, target: Target
) -> CompiledCase:
    launch = captured if isinstance(captured, Launch) else None
    outcome = compiler.compile(side, launch, target) if launch else None
    compiled = outcome if isinstance(outcome, Compiled) else None
    failed = next((each for each in (outcome, captured) if isinstance(each, Failed | CaptureFailure)), None)
    return CompiledCase(
        id=f"{captured.id}@{target.name}",
        workload=captured.id.partition(":")[0],
        kernel=launch.kernel if launch else "",
        target=target.name,
        tier=launch.tier if launch else "core",
        failure=failed.failure if failed else None,
        facts=_facts(compiled, store, target) if compiled else {},
        wall_s=outcome.stage_times_s if outcome else {},
        cpu_s=compiled.stage_cpu_s if compiled else {},
    )


def _facts(compiled: Compiled, store: Store, target: Target) -> dict[str, Fact]:
    contents = {
        name: content
        for name, artifact in compiled.artifacts.items()
        if name not in _UNREAD and (content := store.get(artifact.digest)) is not None
    }
    facts_of_side = facts.of_side(compiled, contents, target)
    for stage in ASSEMBLIES:
        if stage in contents:
            facts_of_side.update(in_loops(stage, contents[stage].decode(errors="replace")))
    return facts_of_side


def in_loops(stage: str, text: str) -> dict[str, int]:
    """Counts instructions by class that run more than once."""
    try:
        lines = canonicalize(stage, text).lines
    except NormalizeError:
        return {}
    inside = "\n".join(
        f"\t{line}" for line, depth in zip(lines, ir_of(stage).depths(lines), strict=True) if depth
    )
    counts = instruction_facts(stage, inside)
    return {f"{stage}.loop.{name}": count for name, count in counts.items()}


def _cpu_s() -> float:
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in spent)
