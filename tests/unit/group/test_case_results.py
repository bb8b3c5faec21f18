"""A judgement is taken again where the same would be found without it, and nowhere else."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable
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
    Options,
    Outcome,
    Pair,
    Sides,
    Verdict,
)
from irdiff.resolve.sides import Side
from irdiff.store import Store
from tests.unit import runs

CASE = "matmul/tma:fp16@sm_90"


@dataclass
class Judging:
    """All that a judgement is made from; what a test changes is used from then on."""

    store: Store
    sides: Sides[Side]
    options: Options
    pair: Pair
    outcomes: Sides[Outcome]

    def keep(self, result: CaseResult) -> None:
        CaseResults(self.store, self.sides, self.options).keep(self.pair, self.outcomes, result)

    def found(self) -> CaseResult | None:
        return CaseResults(self.store, self.sides, self.options).found(self.pair, self.outcomes)


def judged(store: Store, verdict: Verdict = Verdict.CHANGED, **changes: Any) -> CaseResult:
    """With a value in every field that a judgement has."""
    launches = Sides(base=runs.launch(CASE, "base"), head=runs.launch(CASE))
    artifacts = launches.map(lambda launch: {"launch": launch.launched})
    for name, side in artifacts.items():
        for stage in ("ttir", "ptx"):
            digest = store.put(f"{name} {stage}".encode())
            side[stage] = Artifact(stage=stage, digest=digest, size_bytes=9)
    metadata = Sides(base={"shared": 0, "x": [1, 2.5, None], "name": "k"}, head={"shared": True})
    case = runs.case(
        CASE,
        verdict,
        base={"registers": 16, "occupancy": 0.5, "mode": "a"},
        head={"registers": 18, "occupancy": 1.0, "mode": "b"},
        artifacts=artifacts,
        metadata=Sides(base={}, head={}) if verdict is Verdict.UNCHANGED else metadata,
        findings=(Finding(FindingKind.LAUNCH_DIFFERS, "shared"), Finding(FindingKind.REORDERED_ONLY)),
    )
    case = replace(case, **changes)
    description = replace(describe(case, None), counts=Counter({"-bar": 2, "+fence": 1}), size=3)
    cause = Cause(kind=CauseKind.NUMBER, subject="`bar`", count=-2, in_loops=1, ahead="", detail="é")
    description = replace(description, summary=replace(description.summary, causes=(cause,), score=1.25))
    return CaseResult(
        case=case,
        launches=Sides(base=launches.base, head=launches.head),
        description=description if verdict is not Verdict.UNCHANGED else None,
        edit=EditSource(ir="mlir", base=store.put(b"entering"), head=store.put(b"leaving")),
        suspect=True,
    )


@pytest.fixture
def judging(tmp_path: Path) -> Judging:
    store = Store(tmp_path)
    case = judged(store).case
    rows = {
        name: Compiled(
            artifacts={stage: row for stage, row in case.artifacts.of(name).items() if stage != "launch"},
            metadata=case.metadata.of(name),
            handed={"symbol": "k", "packed": [4, 1]},
            stage_times_s=case.compile_s.of(name),
            stage_cpu_s={},
            assembler=Assembler(digest="p" * 64, flags=("-v",)),
            assembler_log="Used 16 registers",
            notes=(),
        )
        for name in ("base", "head")
    }
    pair = Pair(
        id=CASE,
        launch_id="matmul/tma:fp16",
        target=runs.target(),
        base=runs.launch(CASE, "base"),
        head=runs.launch(CASE),
        supported=Sides(base=True, head=True),
        moved=False,
    )
    sides = Sides(base=runs.side("base"), head=runs.side("head"))
    return Judging(store, sides, DEFAULT_OPTIONS, pair, Sides(base=rows["base"], head=rows["head"]))


@pytest.mark.parametrize("verdict", [Verdict.CHANGED, Verdict.ABSORBED, Verdict.UNCHANGED])
def test_it_is_found_whole_with_the_order_of_stages_and_held_once(judging: Judging, verdict: Verdict) -> None:
    result = judged(judging.store, verdict)
    assert judging.found() is None
    judging.keep(result)
    found, again = judging.found(), judging.found()
    assert found == again == result
    assert found
    assert again
    for of in (lambda case: case.facts, lambda case: case.metadata):
        assert repr(of(found.case)) == repr(of(result.case)), "1, 1.0 and True differ"
    assert list(found.case.stages) == list(result.case.stages)
    assert list(found.case.artifacts.head) == list(result.case.artifacts.head)
    assert found.case.facts.base is again.case.facts.base
    assert found.case.stages is again.case.stages
    assert found.description is again.description


def compiled(**changes: Any) -> Callable[[Judging], None]:
    """Head is compiled to something else."""

    def happens(judging: Judging) -> None:
        judging.outcomes = replace(judging.outcomes, head=replace(judging.outcomes.head, **changes))

    return happens


def _another_artifact(judging: Judging) -> None:
    artifacts = judging.outcomes.head.artifacts
    other = replace(artifacts["ptx"], digest=judging.store.put(b"other ptx"))
    compiled(artifacts={**artifacts, "ptx": other})(judging)


def _sides_exchanged(judging: Judging) -> None:
    judging.outcomes = Sides(base=judging.outcomes.head, head=judging.outcomes.base)


def _one_fails(judging: Judging) -> None:
    failed = Failed(failure=runs.FAILURE, transient=False, artifacts={}, stage_times_s={})
    judging.outcomes = replace(judging.outcomes, head=failed)


def _another_toolchain(judging: Judging) -> None:
    side = judging.sides.base
    toolchain = replace(side.toolchain, digest="another")
    judging.sides = replace(judging.sides, base=replace(side, toolchain=toolchain))


def paired(**changes: Any) -> Callable[[Judging], None]:
    def happens(judging: Judging) -> None:
        judging.pair = replace(judging.pair, **changes)

    return happens


def chosen(**changes: Any) -> Callable[[Judging], None]:
    def happens(judging: Judging) -> None:
        judging.options = replace(judging.options, **changes)

    return happens


def _a_text_of_its_edit_is_gone(judging: Judging) -> None:
    edit = judged(judging.store).edit
    assert edit
    judging.store.object_path(edit.head).unlink()


def _the_record_is_damaged(judging: Judging) -> None:
    with sqlite3.connect(judging.store.root / "records-1.sqlite3") as records:
        value = "CAST(replace(value, 'registers', 'Registers') AS BLOB)"
        edit = f"UPDATE records SET value = {value} WHERE kind = 'judged'"
        assert records.execute(edit).rowcount == 1
    records.close()


CHANGES: dict[str, Callable[[Judging], None]] = {
    "another artifact": _another_artifact,
    "other metadata": compiled(metadata={"shared": 8}),
    "something else handed to the launcher": compiled(handed={"symbol": "k", "packed": [8, 1]}),
    "another assembler": compiled(assembler=Assembler(digest="q" * 64, flags=("-v",))),
    "another log of the assembler": compiled(assembler_log="Used 18 registers"),
    "another note": compiled(notes=("no-linker",)),
    "sides exchanged": _sides_exchanged,
    "one fails": _one_fails,
    "another toolchain": _another_toolchain,
    "another launch": paired(head=runs.launch(CASE, grid=(2, 1, 1))),
    "another id at base": paired(base=runs.launch(CASE, "base", id="matmul/old:fp16")),
    "another fact of the target": paired(target=replace(runs.target(), facts={"registers": 1})),
    "calls in another order": paired(moved=True),
    "without passes": chosen(attribute=False),
    "without the cache": chosen(use_cache=False),
    "of some stages": chosen(stages=("ttir",)),
    "a text of its edit is gone": _a_text_of_its_edit_is_gone,
    "the record is damaged": _the_record_is_damaged,
}


@pytest.mark.parametrize("change", CHANGES)
def test_it_is_judged_anew_where_anything_differs(judging: Judging, change: str) -> None:
    judging.keep(judged(judging.store))
    assert judging.found()
    CHANGES[change](judging)
    assert judging.found() is None


@pytest.mark.parametrize(
    ("place", "name"), [(case_results, "_digest_of_code"), (case_results.llvm_process, "version")]
)
def test_another_irdiff_or_llvm_judges_anew(
    judging: Judging, monkeypatch: pytest.MonkeyPatch, place: Any, name: str
) -> None:
    judging.keep(judged(judging.store))
    monkeypatch.setattr(place, name, lambda: "another")
    assert judging.found() is None


@pytest.mark.parametrize(
    "result",
    [
        lambda store: judged(store, Verdict.BROKEN),
        lambda store: judged(store, findings=(Finding(FindingKind.LEXICAL_LLIR, "timeout"),)),
        lambda store: replace(judged(store), transient=True),
    ],
    ids=["does not compile", "texts that may be read next time", "a stage had no time"],
)
def test_what_may_end_differently_is_not_kept(
    judging: Judging, result: Callable[[Store], CaseResult]
) -> None:
    judging.keep(result(judging.store))
    assert judging.found() is None
