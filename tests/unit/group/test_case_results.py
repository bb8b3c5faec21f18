"""A judgement is taken again where the same would be found without it, and nowhere else."""

import sqlite3
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from irdiff.compare.edits import EditSource
from irdiff.group import case_results
from irdiff.group.case_results import CaseResult, CaseResults
from irdiff.group.grouping import describe
from irdiff.model import DEFAULT_OPTIONS, Assembler, Cause, CauseKind, Options, Pair, Sides, Verdict
from irdiff.resolve.sides import Side
from irdiff.store import Store
from tests.unit import runs

CASE = "matmul/tma:fp16@sm_90"
LAUNCHES = Sides(base=runs.launch(CASE, "base"), head=runs.launch(CASE))
METADATA = Sides(base={"shared": 0, "x": [1, 2.5, None], "name": "k"}, head={"shared": True})


def texts(store):
    return Sides(base="base", head="head").map(
        lambda name: runs.kept(store, {stage: f"{name} {stage}" for stage in ("ttir", "ptx")})
    )


@dataclass
class Judging:
    """All that a judgement is made from; what a test changes is used from then on."""

    store: Store
    outcomes: Sides[Any]
    sides: Sides[Side] = field(default_factory=lambda: Sides(base=runs.side("base"), head=runs.side("head")))
    options: Options = DEFAULT_OPTIONS
    pair: Pair = field(default_factory=lambda: runs.pair(CASE, LAUNCHES.base, LAUNCHES.head))

    def keep(self, result):
        CaseResults(self.store, self.sides, self.options).keep(self.pair, self.outcomes, result)

    def found(self):
        return CaseResults(self.store, self.sides, self.options).found(self.pair, self.outcomes)


def judged(store, verdict=Verdict.CHANGED, **changes):
    """With a value in every field that a judgement has."""
    made = texts(store)
    base, head = ({"launch": LAUNCHES.of(side).launched, **made.of(side)} for side in ("base", "head"))
    findings = runs.findings("launch-differs:shared", "inferred-attributes-only")
    facts = {
        f"{side}": {"registers": 16, "occupancy": far, "mode": side}
        for side, far in (("base", 0.5), ("head", 1.0))
    }
    metadata = Sides(base={}, head={}) if verdict is Verdict.UNCHANGED else METADATA
    words = {"artifacts": Sides(base=base, head=head), "metadata": metadata, "findings": findings}
    case = runs.case(CASE, verdict, **facts, **{**words, **changes})
    description = replace(describe(case, None), counts=Counter({"-bar": 2, "+fence": 1}), size=3)
    cause = Cause(kind=CauseKind.NUMBER, subject="`bar`", count=-2, in_loops=1, ahead="", detail="é")
    description = replace(description, summary=replace(description.summary, causes=(cause,), score=1.25))
    return CaseResult(
        case=case,
        launches=LAUNCHES,
        description=description if verdict is not Verdict.UNCHANGED else None,
        edit=EditSource(ir="mlir", base=store.put(b"entering"), head=store.put(b"leaving")),
        unstable=True,
    )


@pytest.fixture
def judging(tmp_path):
    store = Store(tmp_path)
    more = {"handed": {"symbol": "k", "packed": [4, 1]}, "assembler_log": "Used 16 registers"}
    more |= {"assembler": Assembler(digest="p" * 64, flags=("-v",)), "stage_times_s": {"ttir": 0.5}}
    made = texts(store)
    base, head = (runs.compiled(made.of(x), metadata=METADATA.of(x), **more) for x in ("base", "head"))
    return Judging(store, Sides(base=base, head=head))


@pytest.mark.parametrize("verdict", [Verdict.CHANGED, Verdict.ABSORBED, Verdict.UNCHANGED])
def test_it_is_found_whole_with_the_order_of_stages(judging, verdict):
    result = judged(judging.store, verdict)
    assert judging.found() is None
    judging.keep(result)
    found = judging.found()
    assert found == result
    for of in (lambda case: case.facts, lambda case: case.metadata):
        assert repr(of(found.case)) == repr(of(result.case)), "1, 1.0 and True differ"
    assert list(found.case.stages) == list(result.case.stages)
    assert list(found.case.artifacts.head) == list(result.case.artifacts.head)


def other(part, side=None, **changes):
    """A part of what is judged, or one side of it, is another."""

    def happens(judging):
        whole = getattr(judging, part)
        more = {side: replace(whole.of(side), **changes)} if side else changes
        setattr(judging, part, replace(whole, **more))

    return happens


def _another_artifact(judging):
    artifacts = judging.outcomes.head.artifacts | runs.kept(judging.store, {"ptx": "other ptx"})
    other("outcomes", "head", artifacts=artifacts)(judging)


def _sides_exchanged(judging):
    judging.outcomes = Sides(base=judging.outcomes.head, head=judging.outcomes.base)


def _the_record_is_damaged(judging):
    with sqlite3.connect(judging.store.root / "records-1.sqlite3") as records:
        value = "CAST(replace(value, 'registers', 'Registers') AS BLOB)"
        edit = f"UPDATE records SET value = {value} WHERE kind = 'judged'"
        assert records.execute(edit).rowcount == 1
    records.close()


CHANGES = {
    "another artifact": _another_artifact,
    "other metadata": other("outcomes", "head", metadata={"shared": 8}),
    "something else handed to the launcher": other("outcomes", "head", handed={"symbol": "k", "packed": [8, 1]}),
    "another assembler": other("outcomes", "head", assembler=Assembler(digest="q" * 64, flags=("-v",))),
    "another log of the assembler": other("outcomes", "head", assembler_log="Used 18 registers"),
    "another note": other("outcomes", "head", notes=("no-linker",)),
    "sides exchanged": _sides_exchanged,
    "one fails": other("outcomes", head=runs.failed()),
    "another toolchain": other("sides", "base", toolchain=replace(runs.side("base").toolchain, digest="another")),
    "another launch": other("pair", head=runs.launch(CASE, grid=(2, 1, 1))),
    "another id at base": other("pair", base=runs.launch(CASE, "base", id="matmul/old:fp16")),
    "another fact of the target": other("pair", target=replace(runs.target(), facts={"registers": 1})),
    "calls in another order": other("pair", moved=True),
    "without passes": other("options", attribute=False),
    "without the cache": other("options", use_cache=False),
    "of some stages": other("options", stages=("ttir",)),
    "a text of its edit is gone": lambda judging: judging.store.object_path(judging.found().edit.head).unlink(),
    "the record is damaged": _the_record_is_damaged,
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_it_is_judged_anew_where_anything_differs(judging, change):
    judging.keep(judged(judging.store))
    assert judging.found()
    CHANGES[change](judging)
    assert judging.found() is None


@pytest.mark.parametrize(
    ("place", "name"), [(case_results, "_digest_of_code"), (case_results.llvm_process, "version")]
)
def test_another_irdiff_or_llvm_judges_anew(judging, monkeypatch, place, name):
    judging.keep(judged(judging.store))
    monkeypatch.setattr(place, name, lambda: "another")
    assert judging.found() is None


def test_what_may_end_differently_is_not_kept(judging):
    """It does not compile, its texts may be read next time, a stage had no time."""
    store = judging.store
    late = judged(store, findings=runs.findings("lexical-llir:timeout"))
    for result in (judged(store, Verdict.BROKEN), late, replace(judged(store), transient=True)):
        judging.keep(result)
        assert judging.found() is None
