"""A comparison is taken again where the same would be found without it, and nowhere else."""

import sqlite3
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from irdiff.compare import comparer
from irdiff.compare.artifact_comparator import ArtifactComparator
from irdiff.compare.comparer import CaseComparer
from irdiff.compile.compilation import Compilation
from irdiff.ir.canonical import Printed
from irdiff.model import DEFAULT_OPTIONS, Assembler, Options, Pair, Sides, Verdict
from irdiff.resolve.sides import Side
from irdiff.store import Store
from irdiff.store.memo import MemoStep
from tests.unit import runs
from tests.unit.compiled import CUBIN, OTHER_CUBIN, PTX, mlir

CASE = "matmul/tma:fp16@sm_90"
LAUNCHES = Sides(base=runs.launch(CASE, "base"), head=runs.launch(CASE))
METADATA = Sides(base={"shared": 0, "x": [1, 2.5, None], "name": "k"}, head={"shared": True})
BASE = {"ttir": mlir(), "ptx": PTX, "cubin": CUBIN}
HEAD = {**BASE, "ttir": mlir("op.a"), "cubin": OTHER_CUBIN}
LLIR = "define i32 @k() {\n  ret i32 1\n}\n"


@dataclass
class Comparing:
    """All that a comparison rests on; what a test changes is used from then on."""

    store: Store
    outcomes: Sides[Any]
    sides: Sides[Side] = field(default_factory=lambda: Sides(base=runs.side("base"), head=runs.side("head")))
    options: Options = DEFAULT_OPTIONS
    pair: Pair = field(default_factory=lambda: runs.pair(CASE, LAUNCHES.base, LAUNCHES.head))
    read: int = 0

    def case(self):
        """Of a comparer of its own."""
        comparator = ArtifactComparator(self.store, lambda _: Printed(text=None, why_not="timeout"))
        content = comparator.content

        def counted(digest):
            self.read += 1
            return content(digest)

        comparator.content = counted
        compilation = Compilation(pair=self.pair, outcomes=self.outcomes, is_same_input=False)
        return CaseComparer(None, comparator, self.sides, self.options).compare(compilation)

    def is_kept(self):
        self.read = 0
        self.case()
        return self.read == 0


@pytest.fixture
def comparing(tmp_path):
    store = Store(tmp_path)
    more = {"launcher_args": {"symbol": "k", "packed": [4, 1]}, "assembler_log": "Used 16 registers"}
    more |= {"stage_times_s": {"ttir": 0.5}}
    base, head = (
        runs.compiled(runs.kept(store, made), metadata=METADATA.of(name), **more)
        for name, made in (("base", BASE), ("head", HEAD))
    )
    return Comparing(store, Sides(base=base, head=head))


@pytest.mark.parametrize(
    "head", [HEAD, {**HEAD, "cubin": CUBIN}, BASE], ids=["changed", "ir-only", "unchanged"]
)
def test_it_is_found_whole_with_the_order_of_stages(comparing, head):
    outcome = replace(
        comparing.outcomes.base, artifacts=runs.kept(comparing.store, head), metadata={"shared": 0}
    )
    comparing.outcomes = replace(comparing.outcomes, head=outcome)
    made = comparing.case()
    again = comparing.case()
    assert comparing.is_kept() and again == made
    for of in (lambda case: case.facts, lambda case: case.metadata):
        assert repr(of(again)) == repr(of(made)), "1, 1.0 and True differ"
    assert list(again.stages) == list(made.stages)
    assert list(again.artifacts.head) == list(made.artifacts.head)


def other(part, side=None, **changes):
    """A part of what is compared, or one side of it, is another."""

    def happens(comparing):
        whole = getattr(comparing, part)
        more = {side: replace(whole.of(side), **changes)} if side else changes
        setattr(comparing, part, replace(whole, **more))

    return happens


def _another_artifact(comparing):
    artifacts = comparing.outcomes.head.artifacts | runs.kept(
        comparing.store, {"ptx": PTX.replace("16", "17")}
    )
    other("outcomes", "head", artifacts=artifacts)(comparing)


def _sides_exchanged(comparing):
    comparing.outcomes = Sides(base=comparing.outcomes.head, head=comparing.outcomes.base)


def _the_record_is_damaged(comparing):
    with sqlite3.connect(comparing.store.root / "records-1.sqlite3") as records:
        value = "CAST(replace(value, 'changed', 'Changed') AS BLOB)"
        edit = f"UPDATE records SET value = {value} WHERE kind = 'compared'"
        assert records.execute(edit).rowcount == 1
    records.close()


CHANGES = {
    "another artifact": _another_artifact,
    "other metadata": other("outcomes", "head", metadata={"shared": 8}),
    "something else handed to the launcher": other("outcomes", "head", launcher_args={"symbol": "k", "packed": [8, 1]}),
    "another assembler": other("outcomes", "head", assembler=Assembler(digest="q" * 64, flags=("-v",))),
    "another log of the assembler": other("outcomes", "head", assembler_log="Used 18 registers"),
    "another note": other("outcomes", "head", notes=("no-linker",)),
    "sides exchanged": _sides_exchanged,
    "another toolchain": other("sides", "base", toolchain=replace(runs.side("base").toolchain, digest="another")),
    "another launch": other("pair", head=runs.launch(CASE, grid=(2, 1, 1))),
    "another id at base": other("pair", base=runs.launch(CASE, "base", id="matmul/old:fp16")),
    "another fact of the target": other("pair", target=replace(runs.target(), facts={"registers": 1})),
    "calls in another order": other("pair", moved=True),
    "without the cache": other("options", use_cache=False),
    "of some stages": other("options", stages=("ttgir",)),
    "the record is damaged": _the_record_is_damaged,
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_it_is_compared_anew_where_anything_differs(comparing, change):
    comparing.case()
    assert comparing.is_kept()
    CHANGES[change](comparing)
    assert not comparing.is_kept()


def test_another_irdiff_or_llvm_compares_anew(comparing, monkeypatch):
    comparing.case()
    with monkeypatch.context() as patch:
        patch.setattr(MemoStep, "code", "another")
        assert not comparing.is_kept()
    monkeypatch.setattr(comparer.llvm_process, "version", lambda: "another")
    assert not comparing.is_kept()


def test_what_may_end_differently_is_not_kept(comparing):
    """It does not compile, or its texts may be read the next time."""
    texts = {"llir": LLIR}, {"llir": LLIR.replace("ret i32 1", "ret i32 2")}
    late = Sides(base=texts[0], head=texts[1]).map(
        lambda made: runs.compiled(runs.kept(comparing.store, made))
    )
    comparing.outcomes = late
    found = comparing.case()
    assert found.verdict is Verdict.CHANGED and not comparing.is_kept()
    comparing.outcomes = replace(late, head=runs.failed())
    assert comparing.case().verdict is Verdict.BROKEN
    assert comparing.store.keys("compared") == []
