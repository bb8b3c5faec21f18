"""The step `count`: what changed cases execute on both sides, and what that says of their time.

What was counted is kept in the store, under the machine code and the launch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from irdiff import backends, work
from irdiff.backends import machine_code_text
from irdiff.cost import launch_time
from irdiff.cost.expected import expected_time
from irdiff.cost.launch_time import LaunchTime
from irdiff.counted_work import NotCountedWork, Work, facts_of
from irdiff.execution import schedule
from irdiff.execution.compiled_launch import CompiledLaunch
from irdiff.execution.machine import CodeReader
from irdiff.model import (
    ComparedCase,
    Expected,
    ExpectedTime,
    Fact,
    Launch,
    Sides,
    Target,
)
from irdiff.parallel import Progress, Report
from irdiff.store import Store
from irdiff.store.memo import Memo, MemoStep
from irdiff.work import Readers

if TYPE_CHECKING:
    from irdiff.resolve.sides import Side

_BLOCKS = "blocks_per_multiprocessor"


@dataclass(frozen=True, kw_only=True)
class CountedSide:
    work: Work
    time: LaunchTime | None
    """None for a target that does not state its throughputs."""


STEP: MemoStep[CountedSide | NotCountedWork] = MemoStep("work", __name__, CountedSide | NotCountedWork)
WorkOfCase = Sides[Work | NotCountedWork | None]


@dataclass(frozen=True, kw_only=True)
class CaseCost:
    work: WorkOfCase
    expected: ExpectedTime | None
    facts: Sides[Mapping[str, Fact]]
    """Those of the case, and the figures that were counted on both sides."""


CountedCases = Mapping[str, CaseCost]
"""By case."""


@dataclass(frozen=True, kw_only=True)
class LaunchToCount:
    memo: Memo[CountedSide | NotCountedWork]
    compiled: CompiledLaunch
    blocks_at_once: int
    """That a multiprocessor holds."""
    target: Target


SideToCount = LaunchToCount | NotCountedWork | None
Counting = Callable[[LaunchToCount], CountedSide | NotCountedWork]


def set_other_options(sides: Sides[Side]) -> bool:
    """True if the user gives both sides' launches different options (`triton==3.9.0+num_warps=8`)."""
    base, head = (
        {name: value for name, value in side.toolchain.settings.items() if name.islower()} for side in sides
    )
    return base != head


def disassembler_of(sides: Sides[Side]) -> Path | None:
    """Head's, else base's; None where none has one."""
    programs = machine_code_text.programs(side.toolchain.root for side in sides)
    return programs[-1] if programs else None


@dataclass(frozen=True, kw_only=True)
class LaunchCounter:
    store: Store
    disassembler: Path | None
    report: Report
    is_edited: bool
    """True if the user gives both sides' launches different options."""

    def count(
        self, changed: Sequence[ComparedCase], launches: Mapping[str, Launch], known: Sequence[Target]
    ) -> CountedCases:
        """`known`: the targets of the cases."""
        targets = {target.name: target for target in known}
        by_case = {
            case.id: Sides(
                base=self._launch(case, "base", launches, targets[case.target]),
                head=self._launch(case, "head", launches, targets[case.target]),
            )
            for case in changed
        }
        counts = self._counting([launch for sides in by_case.values() for launch in sides])
        counted: dict[str, CaseCost] = {}
        for number, case in enumerate(changed):
            self.report(Progress(phase="count", done=number, total=len(changed), detail=case.id))
            is_edited = self.is_edited or _is_edited(
                case.launches.map(lambda key: launches.get(key) if key else None)
            )
            counted[case.id] = _cost(case, _both(by_case[case.id], counts), is_edited=is_edited)
        return counted

    def _launch(
        self, case: ComparedCase, side: str, launches: Mapping[str, Launch], target: Target
    ) -> SideToCount:
        kind, key = backends.of(target.backend).BINARY, case.launches.of(side)
        artifacts = case.artifacts.of(side)
        launch = launches.get(key) if key else None
        reader = self._readers.get(target.backend)
        if reader is None or kind is None or launch is None:
            return None
        binary, text = artifacts.get(kind.artifact), artifacts.get(kind.assembly)
        if binary is None:
            return None
        if reason := _not_counted(reader, launch, target):
            return NotCountedWork(reason=reason)
        content = self.store.get(binary.digest)
        assembly = self.store.get(text.digest) if reader.reads_assembly and text else b""
        if content is None or assembly is None:
            return NotCountedWork(reason="its machine code is not in the store any more")
        metadata = case.metadata.of(side)
        blocks = int(case.facts.of(side).get(_BLOCKS) or 1)
        memo = self.store.memo(STEP, [binary.digest, launch.key, metadata, blocks, dict(target.facts)])
        compiled = CompiledLaunch(
            launch=launch, metadata=metadata, binary=content, backend=target.backend, arch=target.arch,
            assembly=assembly.decode("utf-8", "replace"),
        )  # fmt: skip
        return LaunchToCount(memo=memo, compiled=compiled, blocks_at_once=blocks, target=target)

    @cached_property
    def _readers(self) -> Readers:
        return work.readers(self.disassembler)

    def _counting(self, launches: Sequence[SideToCount]) -> Counting:
        """Counts one launch; before, the new instructions of all are disassembled together."""
        new = [each for each in launches if isinstance(each, LaunchToCount) and each.memo.get() is None]
        for backend, reader in self._readers.items():
            reader.prepare([each.compiled for each in new if each.target.backend == backend])

        def count(launch: LaunchToCount) -> CountedSide | NotCountedWork:
            if (kept := launch.memo.get()) is not None:
                return kept
            try:
                counted = _counted(launch, self._readers)
            except Exception as error:  # it must not cost the comparison, which is done but for the counts
                words = " ".join(f"{type(error).__name__}: {error}".split())
                return NotCountedWork(reason=f"a bug of irdiff: {words[:200]}")
            launch.memo.keep(counted)
            return counted

        return count


def _not_counted(reader: CodeReader, launch: Launch, target: Target) -> str:
    """Why the launch cannot be counted, whatever its code is; empty where it can."""
    if launch.unseen:
        return f"the launch cannot be read: {', and '.join(launch.unseen)}"
    if not reader.is_counted(target.arch):
        return f"machine code of {target.name} is not counted yet"
    return reader.refusal


def _counted(launch: LaunchToCount, readers: Readers) -> CountedSide | NotCountedWork:
    counted = work.count(launch.compiled, readers)
    if isinstance(counted, NotCountedWork):
        return counted
    rates = schedule.rates(launch.target)
    if rates is None:
        return CountedSide(work=counted.work, time=None)
    time = launch_time.of_launch(counted, launch.compiled.launch, launch.blocks_at_once, rates)
    return CountedSide(work=counted.work, time=time)


def _both(launches: Sides[SideToCount], count: Counting) -> Sides[CountedSide | NotCountedWork | None]:
    """Head is counted only where base was: figures of one side compare with nothing, and cost as much."""
    base = count(launches.base) if isinstance(launches.base, LaunchToCount) else launches.base
    if isinstance(base, NotCountedWork) and isinstance(launches.head, LaunchToCount):
        return Sides(base=base, head=NotCountedWork(reason="there is nothing to compare it with"))
    head = count(launches.head) if isinstance(launches.head, LaunchToCount) else launches.head
    return Sides(base=base, head=head)


def _is_edited(launches: Sides[Launch | None]) -> bool:
    """True if the kernel's text or its launch differs, or one side launches nothing."""
    return len({launch and (launch.source_digest, launch.launched.digest) for launch in launches}) > 1


def _cost(
    case: ComparedCase, sides: Sides[CountedSide | NotCountedWork | None], *, is_edited: bool
) -> CaseCost:
    work = sides.map(lambda side: side.work if isinstance(side, CountedSide) else side)
    expected = _expected(sides, is_edited=is_edited)
    return CaseCost(work=work, expected=expected, facts=_with_figures(case.facts, work))


def _expected(sides: Sides[CountedSide | NotCountedWork | None], *, is_edited: bool) -> ExpectedTime:
    base, head = sides
    if isinstance(base, CountedSide) and isinstance(head, CountedSide):
        if base.time and head.time:
            works = Sides(base=base.work, head=head.work)
            times = Sides(base=base.time, head=head.time)
            return expected_time(times, works, is_edited=is_edited)
        return ExpectedTime(expected=Expected.UNKNOWN, why="irdiff knows no throughputs of this target")
    reasons = [side.reason for side in sides if isinstance(side, NotCountedWork)]
    why = f"not counted: {reasons[0]}" if reasons else "not counted on this target"
    return ExpectedTime(expected=Expected.UNKNOWN, why=why)


def _figures(work: Work | NotCountedWork | None) -> Mapping[str, Fact]:
    return facts_of(work) if isinstance(work, Work) else {}


def _with_figures(facts: Sides[Mapping[str, Fact]], work: WorkOfCase) -> Sides[Mapping[str, Fact]]:
    figures = work.map(_figures)
    both = figures.base.keys() & figures.head.keys()
    return facts.zip(figures).map(
        lambda side: {**side[0], **{name: figure for name, figure in side[1].items() if name in both}}
    )
