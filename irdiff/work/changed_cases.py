"""The step `count`: what the launches of changed cases execute on both sides. No others are counted.

What was counted is kept in the store, under the machine code and the launch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from irdiff.backends import nvidia
from irdiff.compare import machine_code_text
from irdiff.counted_work import NotCountedWork, Work, facts_of
from irdiff.errors import IrdiffError
from irdiff.model import ComparedCase, Fact, Launch, Sides, Target, Verdict
from irdiff.parallel import Progress, Report
from irdiff.store import Store
from irdiff.store.memo import Memo, MemoStep
from irdiff.work import counting, encodings
from irdiff.work.compiled_launch import CompiledLaunch
from irdiff.work.disassembler import Disassembler

if TYPE_CHECKING:
    from irdiff.resolve.sides import Side

_COUNTED_ARCHITECTURES = frozenset({90})
STEP: MemoStep[Work | NotCountedWork] = MemoStep("work", __name__, Work | NotCountedWork)
WorkOfCase = Sides[Work | NotCountedWork | None]
NO_WORK: WorkOfCase = Sides(base=None, head=None)
CountedWork = Mapping[str, WorkOfCase]
"""By case."""


@dataclass(frozen=True, kw_only=True)
class LaunchToCount:
    case_id: str
    side: str
    memo: Memo[Work | NotCountedWork]
    compiled: CompiledLaunch


def disassembler_of(sides: Sides[Side]) -> Path | None:
    """The nvdisasm of head's toolchain, else base's; None where none has one."""
    found = machine_code_text.programs(side.toolchain.root for side in sides)
    return found[-1] if found else None


@dataclass(frozen=True, kw_only=True)
class LaunchCounter:
    store: Store
    nvdisasm: Path | None
    targets: Sequence[Target]
    report: Report

    def count(self, cases: Sequence[ComparedCase], launches: Mapping[str, Launch]) -> CountedWork:
        """Of each changed case what its launch executes on both sides."""
        architectures = {target.name: target.arch for target in self.targets if target.backend == "cuda"}
        launches_to_count: list[LaunchToCount] = []
        answers: dict[tuple[str, str], Work | NotCountedWork | None] = {}
        for case in cases:
            if case.verdict is not Verdict.CHANGED or case.target not in architectures:
                continue
            for side in ("base", "head"):
                launch = self._launch(case, side, launches, architectures[case.target])
                answer = launch.memo.get() if isinstance(launch, LaunchToCount) else launch
                answers[case.id, side] = answer
                if answer is None and isinstance(launch, LaunchToCount):
                    launches_to_count.append(launch)
        for launch, counted in zip(launches_to_count, self._count(launches_to_count), strict=True):
            answers[launch.case_id, launch.side] = counted
            launch.memo.keep(counted)
        counted_cases = dict.fromkeys(case_id for case_id, _ in answers)
        return {name: Sides(base=answers[name, "base"], head=answers[name, "head"]) for name in counted_cases}

    def _launch(
        self, case: ComparedCase, side: str, launches: Mapping[str, Launch], arch: int | str
    ) -> LaunchToCount | NotCountedWork | None:
        artifact, key = case.artifacts.of(side).get(nvidia.CUBIN), case.launches.of(side)
        launch = launches.get(key) if key else None
        if artifact is None or launch is None:
            return None
        if arch not in _COUNTED_ARCHITECTURES:
            return NotCountedWork(reason=f"machine code of {case.target} is not counted yet")
        if self.nvdisasm is None:
            return NotCountedWork(reason="no installed toolchain has nvdisasm")
        content = self.store.get(artifact.digest)
        if content is None:
            return NotCountedWork(reason="its machine code is not in the store any more")
        metadata = case.metadata.of(side)
        memo = self.store.memo(STEP, [artifact.digest, launch.key, metadata])
        compiled = CompiledLaunch(launch=launch, metadata=metadata, binary=content, arch=int(arch))
        return LaunchToCount(case_id=case.id, side=side, memo=memo, compiled=compiled)

    def _count(self, launches_to_count: Sequence[LaunchToCount]) -> list[Work | NotCountedWork]:
        if not launches_to_count or self.nvdisasm is None:
            return []
        disassembler = Disassembler(self.nvdisasm)
        for arch in {launch.compiled.arch for launch in launches_to_count}:
            disassembler.prepare(arch, _codes(launches_to_count, arch))
        found: list[Work | NotCountedWork] = []
        for number, launch in enumerate(launches_to_count):
            self.report(
                Progress(phase="count", done=number, total=len(launches_to_count), detail=launch.case_id)
            )
            counted = counting.count(launch.compiled, disassembler)
            found.append(counted if isinstance(counted, NotCountedWork) else counted.work)
        return found


def _codes(launches_to_count: Sequence[LaunchToCount], arch: int) -> list[bytes]:
    found = []
    for launch in launches_to_count:
        if launch.compiled.arch == arch:
            try:
                found.append(encodings.code_of(launch.compiled.binary, launch.compiled.kernel))
            except IrdiffError:  # counting it says so
                continue
    return found


def _figures(work: Work | NotCountedWork | None) -> Mapping[str, Fact]:
    return facts_of(work) if isinstance(work, Work) else {}


def with_figures(facts: Sides[Mapping[str, Fact]], work: WorkOfCase) -> Sides[Mapping[str, Fact]]:
    """The facts of both sides with the figures that were counted on both."""
    figures = work.map(_figures)
    both = figures.base.keys() & figures.head.keys()
    return facts.zip(figures).map(
        lambda side: {**side[0], **{name: figure for name, figure in side[1].items() if name in both}}
    )
