"""Which passes of a compiler run in which cases, and in which they do anything.

Each stage of MLIR passes is run again on the text that it compiled, and the IR between passes is kept: a pass
did something if the text after it differs from the one before.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from irdiff.attribute.pass_states import State
from irdiff.attribute.replayer import Dump, Replay, Replayer
from irdiff.compile.worker_compiler import WorkerCompiler
from irdiff.model import Compiled, Launch, Target
from irdiff.parallel import Report, in_parallel
from irdiff.resolve.sides import Side
from irdiff.stages import Stage

_STAGES = (
    (Stage.SOURCE, Stage.TTIR),
    (Stage.SOURCE, Stage.GLIR),
    (Stage.TTIR, Stage.TTGIR),
    (Stage.GLIR, Stage.TTGIR),
    (Stage.TTGIR, Stage.LLIR),
)
"""Stages that are made of MLIR passes, with what enters them."""


@dataclass(frozen=True, kw_only=True)
class CaseExercise:
    """The passes of one case, each once."""

    case_id: str
    ran: frozenset[str]
    acted: frozenset[str]
    """Those after which the text was another one."""


@dataclass(frozen=True, kw_only=True)
class PassUse:
    """One pass over all cases."""

    name: str
    ran: int
    acted: int
    examples: tuple[str, ...]
    """Cases in which it did something, the first three."""


def of_launches(
    side: Side,
    launches: Sequence[tuple[Launch, Target]],
    compiler: WorkerCompiler,
    report: Report,
) -> list[CaseExercise]:
    """Of those that compile."""

    def one(job: tuple[Launch, Target]) -> CaseExercise | None:
        launch, target = job
        compiled = compiler.compile(side, launch, target)
        return (
            _of_launch(side, launch, target, compiled, replayer) if isinstance(compiled, Compiled) else None
        )

    replayer, jobs = Replayer(compiler), compiler.requests.config.jobs
    rows = in_parallel(one, launches, jobs, "exercise", report)
    return [row for row in rows if row is not None]


def _of_launch(
    side: Side, launch: Launch, target: Target, compiled: Compiled, replayer: Replayer
) -> CaseExercise:
    ran: set[str] = set()
    acted: set[str] = set()
    for before, stage in _STAGES:
        if before not in compiled.artifacts or stage not in compiled.artifacts:
            continue
        replay = Replay(
            side=side,
            launch=launch,
            target=target,
            stage=stage,
            input_stage=before,
            input_digest=compiled.artifacts[before].digest,
            metadata=compiled.metadata,
            dump=Dump.ALL,
        )
        replayed = replayer.run(replay)
        for name, did in steps(replayed.states):
            ran.add(name)
            acted |= {name} if did else set()
    case_id = f"{launch.id}@{target.name}"
    return CaseExercise(case_id=case_id, ran=frozenset(ran), acted=frozenset(acted))


def steps(states: Sequence[State]) -> Iterable[tuple[str, bool]]:
    """Each pass that ran, in order, and whether the text after it is another one than before it."""
    for before, after in itertools.pairwise(states):
        yield before.name, before.digest != after.digest


def summarize(found: Iterable[CaseExercise]) -> list[PassUse]:
    """By name. A pass that runs more than once in a case counts once."""
    ran: Counter[str] = Counter()
    acted: dict[str, list[str]] = {}
    for case in sorted(found, key=lambda case: case.case_id):
        ran.update(case.ran)
        for name in case.acted:
            acted.setdefault(name, []).append(case.case_id)
    rows = [(name, ran[name], acted.get(name, [])) for name in sorted(ran)]
    return [
        PassUse(name=name, ran=count, acted=len(ids), examples=tuple(ids[:3])) for name, count, ids in rows
    ]
