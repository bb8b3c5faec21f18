"""The step `count`: what the launches of changed cases execute on both sides. No others are counted.

What was counted is kept in the store, under the machine code, the launch and irdiff's own code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from irdiff.backends import nvidia
from irdiff.counted_work import NotCountedWork, Work, facts_of
from irdiff.errors import IrdiffError
from irdiff.model import Case, Fact, Launch, Sides, Target, Verdict
from irdiff.parallel import Progress, Report
from irdiff.resolve.sides import Side
from irdiff.store import Store, digest_of_folders, key_of
from irdiff.work import counting, encodings
from irdiff.work.compiled_launch import CompiledLaunch
from irdiff.work.disassembler import Disassembler

_COUNTED_ARCHITECTURES = frozenset({90})
_KIND = "work"
_counted: TypeAdapter[Work | NotCountedWork] = TypeAdapter(Work | NotCountedWork)


@cache
def _digest_of_code() -> str:
    return key_of(digest_of_folders("work", "backends"), TypeAdapter(Work).json_schema())


@dataclass(frozen=True, kw_only=True)
class LaunchToCount:
    case_id: str
    side: str
    key: str
    compiled: CompiledLaunch


def disassembler_of(sides: Sides[Side]) -> Path | None:
    """The nvdisasm of head's toolchain, else base's; None where none has one."""
    for side in (sides.head, sides.base):
        path = Path(side.toolchain.root) / "backends" / nvidia.FOLDER / "bin" / "nvdisasm"
        if path.is_file():
            return path
    return None


@dataclass(frozen=True, kw_only=True)
class LaunchCounter:
    store: Store
    nvdisasm: Path | None
    targets: Sequence[Target]
    report: Report

    def with_work(self, cases: Sequence[Case], launches: Mapping[str, Launch]) -> tuple[Case, ...]:
        """The same cases; the changed ones with their counted work, and its figures among their facts."""
        architectures = {target.name: target.arch for target in self.targets if target.backend == "cuda"}
        launches_to_count: list[LaunchToCount] = []
        answers: dict[tuple[str, str], Work | NotCountedWork] = {}
        for case in cases:
            if case.verdict is not Verdict.CHANGED or case.target not in architectures:
                continue
            for side in ("base", "head"):
                launch = self._launch(case, side, launches, architectures[case.target])
                answer = self._kept(launch) if isinstance(launch, LaunchToCount) else launch
                if answer is not None:
                    answers[case.id, side] = answer
                elif isinstance(launch, LaunchToCount):
                    launches_to_count.append(launch)
        for launch, counted in zip(launches_to_count, self._count(launches_to_count), strict=True):
            answers[launch.case_id, launch.side] = counted
            self.store.put_record(_KIND, launch.key, _counted.dump_python(counted, mode="json"))
        return tuple(_with(case, answers) for case in cases)

    def _kept(self, launch: LaunchToCount) -> Work | NotCountedWork | None:
        record = self.store.get_record(_KIND, launch.key)
        return None if record is None else _counted.validate_python(record)

    def _launch(
        self, case: Case, side: str, launches: Mapping[str, Launch], arch: int | str
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
        made_with = _digest_of_code(), artifact.digest, launch.key, dict(metadata)
        compiled = CompiledLaunch(launch=launch, metadata=metadata, binary=content, arch=int(arch))
        return LaunchToCount(case_id=case.id, side=side, key=key_of(*made_with), compiled=compiled)

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


def _with(case: Case, answers: Mapping[tuple[str, str], Any]) -> Case:
    work = Sides(base=answers.get((case.id, "base")), head=answers.get((case.id, "head")))
    if work.base is None and work.head is None:
        return case
    counted = work.map(_figures)
    both = counted.base.keys() & counted.head.keys()

    def with_figures(row: tuple[Mapping[str, Fact], Mapping[str, Fact]]) -> Mapping[str, Fact]:
        facts, figures = row
        return {**facts, **{name: figures[name] for name in figures if name in both}}

    facts = case.facts.zip(counted).map(with_figures)
    return replace(case, work=work, facts=facts)
