"""A judgement is taken again where the same would be found without it, and nowhere else."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from irdiff.compare.edits import EditSource
from irdiff.findings import Finding, FindingKind
from irdiff.group import case_results
from irdiff.group.case_results import CaseResult, CaseResults
from irdiff.group.grouping import describe
from irdiff.model import (
    DEFAULT_OPTIONS,
    Artifact,
    Assembler,
    Cause,
    CauseKind,
    Compiled,
    Failed,
    Failure,
    FailureKind,
    Outcome,
    Pair,
    Sides,
    Verdict,
)
from irdiff.store import Store

CASE = "matmul/tma:fp16@sm_90"


@dataclass
class Bench:
    store: Store
    build: Any

    def __post_init__(self) -> None:
        self.sides = Sides(base=self.build.side("base"), head=self.build.side("head"))
        self.options = DEFAULT_OPTIONS
        self.pair = Pair(
            id=CASE,
            launch_id="matmul/tma:fp16",
            target=self.build.target(),
            base=self.build.launch(CASE, "base"),
            head=self.build.launch(CASE, "head"),
            supported=Sides(base=True, head=True),
            moved=False,
        )
        self.judged = self.judge(Verdict.CHANGED)
        case = self.judged.case
        self.outcomes: Sides[Outcome] = Sides(
            base=_compiled(case.artifacts.base, case.metadata.base, case.compile_s.base),
            head=_compiled(case.artifacts.head, case.metadata.head, case.compile_s.head),
        )

    def judge(self, verdict: Verdict, **changes: Any) -> CaseResult:
        """With a value in every field that a judgement has."""
        launched = Sides(base=self.pair.base, head=self.pair.head).map(lambda side: side.launched)
        sides: Sides[dict[str, Artifact]] = launched.map(lambda artifact: {"launch": artifact})
        for name, side in sides.items():
            for stage in ("ttir", "ptx"):
                digest = self.store.put(f"{name} {stage}".encode())
                side[stage] = Artifact(stage=stage, digest=digest, size_bytes=9)
        case = self.build.case(
            CASE,
            verdict,
            base={"registers": 16, "occupancy": 0.5, "mode": "a"},
            head={"registers": 18, "occupancy": 1.0, "mode": "b"},
            artifacts=sides,
            metadata=Sides(base={"shared": 0, "x": [1, 2.5, None], "name": "k"}, head={"shared": True}),
            findings=(Finding(FindingKind.LAUNCH_DIFFERS, "shared"), Finding(FindingKind.REORDERED_ONLY)),
            kernel=self.pair.head.kernel,
        )
        case = replace(case, **changes)
        description = replace(describe(case, None), counts=Counter({"-bar": 2, "+fence": 1}), size=3)
        cause = Cause(kind=CauseKind.NUMBER, subject="`bar`", count=-2, in_loops=1, ahead="", detail="é")
        description = replace(description, summary=replace(description.summary, causes=(cause,), score=1.25))
        return CaseResult(
            case=case,
            launches=Sides(base=self.pair.base, head=self.pair.head),
            outcomes=None,
            description=description if verdict is not Verdict.UNCHANGED else None,
            edit=EditSource(ir="mlir", base=self.store.put(b"entering"), head=self.store.put(b"leaving")),
            suspect=True,
        )

    @property
    def case_results(self) -> CaseResults:
        return CaseResults(self.store, self.sides, self.options)

    def keep(self, judged: CaseResult) -> None:
        self.case_results.keep(self.pair, self.outcomes, judged)

    def found(self) -> CaseResult | None:
        return self.case_results.found(self.pair, self.outcomes)

    def compiled_otherwise(self, **changes: Any) -> None:
        self.outcomes = replace(self.outcomes, head=replace(self.outcomes.head, **changes))


def _compiled(
    artifacts: Mapping[str, Artifact], metadata: Mapping[str, object], times_s: Mapping[str, float]
) -> Compiled:
    return Compiled(
        artifacts={stage: row for stage, row in artifacts.items() if stage != "launch"},
        metadata=metadata,
        handed={"symbol": "k", "packed": [4, 1]},
        stage_times_s=times_s,
        stage_cpu_s={},
        assembler=Assembler(digest="p" * 64, flags=("-v",)),
        assembler_log="Used 16 registers",
        notes=(),
    )


@pytest.fixture
def bench(tmp_path: Path, build: Any) -> Bench:
    return Bench(Store(tmp_path), build)


@pytest.mark.parametrize("verdict", [Verdict.CHANGED, Verdict.ABSORBED, Verdict.UNCHANGED])
def test_it_says_all_that_was_said(bench: Bench, verdict: Verdict) -> None:
    judged = bench.judge(verdict)
    if verdict is Verdict.UNCHANGED:  # that has no metadata
        judged = replace(judged, case=replace(judged.case, metadata=Sides(base={}, head={})))
    assert bench.found() is None
    bench.keep(judged)
    found = bench.found()
    assert found == judged
    assert found is not None
    ours, theirs = ((case.facts, case.metadata) for case in (found.case, judged.case))
    assert repr(ours) == repr(theirs), "1, 1.0 and True differ"


def test_calls_in_another_order_are_judged_anew(bench: Bench) -> None:
    """Which of two calls has moved is for the other calls to say: the launches themselves are the same."""
    bench.keep(bench.judged)
    bench.pair = replace(bench.pair, moved=True)
    assert bench.found() is None


def test_the_order_of_stages_is_kept(bench: Bench) -> None:
    bench.keep(bench.judged)
    found = bench.found()
    assert found is not None
    assert list(found.case.stages) == list(bench.judged.case.stages)
    assert list(found.case.artifacts.head) == list(bench.judged.case.artifacts.head)


def _another_artifact(bench: Bench) -> None:
    artifacts = bench.outcomes.head.artifacts
    other = replace(artifacts["ptx"], digest=bench.store.put(b"other ptx"))
    bench.compiled_otherwise(artifacts={**artifacts, "ptx": other})


def _other_metadata(bench: Bench) -> None:
    bench.compiled_otherwise(metadata={"shared": 8})


def _something_else_handed_to_the_launcher(bench: Bench) -> None:
    bench.compiled_otherwise(handed={"symbol": "k", "packed": [8, 1]})


def _another_assembler(bench: Bench) -> None:
    bench.compiled_otherwise(assembler=Assembler(digest="q" * 64, flags=("-v",)))


def _another_log_of_the_assembler(bench: Bench) -> None:
    bench.compiled_otherwise(assembler_log="Used 18 registers")


def _another_note(bench: Bench) -> None:
    bench.compiled_otherwise(notes=("no-linker",))


def _sides_exchanged(bench: Bench) -> None:
    bench.outcomes = Sides(base=bench.outcomes.head, head=bench.outcomes.base)


def _one_fails(bench: Bench) -> None:
    failure = Failure(kind=FailureKind.ERROR, stage="ttgir", message="", signal=None, stderr="")
    failed = Failed(failure=failure, transient=False, artifacts={}, stage_times_s={})
    bench.outcomes = replace(bench.outcomes, head=failed)


def _another_launch(bench: Bench) -> None:
    bench.pair = replace(bench.pair, head=replace(bench.pair.head, grid=(2, 1, 1)))


def _another_id_at_base(bench: Bench) -> None:
    bench.pair = replace(bench.pair, base=replace(bench.pair.base, id="matmul/old:fp16"))


def _another_fact_of_the_target(bench: Bench) -> None:
    bench.pair = replace(bench.pair, target=replace(bench.pair.target, facts={"registers": 1}))


def _another_toolchain(bench: Bench) -> None:
    side = bench.sides.base
    bench.sides = replace(
        bench.sides, base=replace(side, toolchain=replace(side.toolchain, digest="another"))
    )


def _without_passes(bench: Bench) -> None:
    bench.options = replace(bench.options, attribute=False)


def _without_shortcut(bench: Bench) -> None:
    bench.options = replace(bench.options, use_cache=False)


def _of_some_stages(bench: Bench) -> None:
    bench.options = replace(bench.options, stages=("ttir",))


def _a_text_of_its_edit_is_gone(bench: Bench) -> None:
    assert bench.judged.edit
    bench.store.object_path(bench.judged.edit.head).unlink()


def _the_record_is_damaged(bench: Bench) -> None:
    with sqlite3.connect(bench.store.root / "records-1.sqlite3") as records:
        edit = "UPDATE records SET value = CAST(replace(value, 'registers', 'Registers') AS BLOB) WHERE kind = 'judged'"
        assert records.execute(edit).rowcount == 1
    records.close()


@pytest.mark.parametrize(
    "happens",
    [
        _another_artifact,
        _other_metadata,
        _something_else_handed_to_the_launcher,
        _another_assembler,
        _another_log_of_the_assembler,
        _another_note,
        _sides_exchanged,
        _one_fails,
        _another_launch,
        _another_id_at_base,
        _another_fact_of_the_target,
        _another_toolchain,
        _without_passes,
        _without_shortcut,
        _of_some_stages,
        _a_text_of_its_edit_is_gone,
        _the_record_is_damaged,
    ],
)
def test_it_is_judged_anew_where_anything_is_otherwise(
    bench: Bench, happens: Callable[[Bench], None]
) -> None:
    bench.keep(bench.judged)
    assert bench.found()
    happens(bench)
    assert bench.found() is None


def test_another_irdiff_judges_anew(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.keep(bench.judged)
    monkeypatch.setattr(case_results, "_digest_of_code", lambda: "another irdiff")
    assert bench.found() is None


def test_another_reader_of_llvm_ir_judges_anew(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.keep(bench.judged)
    monkeypatch.setattr(case_results.llvm_process, "version", lambda: "another LLVM")
    assert bench.found() is None


def test_what_does_not_compile_is_not_kept(bench: Bench) -> None:
    bench.keep(bench.judge(Verdict.BROKEN))
    assert bench.found() is None


def test_texts_that_may_be_read_the_next_time_are_not_kept(bench: Bench) -> None:
    bench.keep(bench.judge(Verdict.CHANGED, findings=(Finding(FindingKind.LEXICAL_LLIR, "timeout"),)))
    assert bench.found() is None


def test_what_a_stage_had_no_time_for_is_not_kept(bench: Bench) -> None:
    bench.keep(replace(bench.judged, transient=True))
    assert bench.found() is None


def test_what_is_still_to_be_described_is_not_kept(bench: Bench) -> None:
    bench.keep(replace(bench.judged, description=None))
    assert bench.found() is None


def test_what_cases_have_in_common_is_held_once(bench: Bench) -> None:
    bench.keep(bench.judged)
    one, other = bench.found(), bench.found()
    assert one is not None
    assert other is not None
    assert one.case.facts.base is other.case.facts.base
    assert one.case.stages is other.case.stages
    assert one.description is other.description
