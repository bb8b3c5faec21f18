"""Descriptions are made of the texts that show an edit best."""

from dataclasses import replace

import pytest

from irdiff.attribute.edit_reader import EditReader
from irdiff.compare import artifact_comparator
from irdiff.compare.artifact_comparator import ArtifactComparator
from irdiff.compare.edits import EditSource
from irdiff.group.describer import CaseDescriber
from irdiff.model import Sides, Verdict
from irdiff.store import Store
from tests.unit import runs
from tests.unit.compiled import mlir, no_llvm

ONE, TWO, THREE = (mlir(f"ttg.op{name}") for name in ("one", "two", "three"))
PTX = ".version 8.7\n.target sm_90a\n.visible .entry k()\n{\n\tmov.u32 \t%r1, 16;\n\tbar.sync 0;\n\tret;\n}\n"
SIZED = "%0 = tt.histogram {allocation.offset = 0 : i32, allocation.size = 8 : i32} : i32"


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path)


def case(store, stage, *texts):
    base, head = ({} if text is None else runs.kept(store, {stage or "ttgir": text}) for text in texts)
    origin, artifacts = runs.origin(stage) if stage else None, Sides(base=base, head=head)
    return runs.case("a/x:1@sm_90", Verdict.CHANGED, origin=origin, artifacts=artifacts)


def source(store, base, head, ir="ttgir"):
    return EditSource(ir=ir, base=store.put(base.encode()), head=store.put(head.encode()))


def describe(store, case, source=None, **given):
    return CaseDescriber(EditReader(ArtifactComparator(store, no_llvm))).describe(case, source, **given)


def lines(store, case, source=None):
    return sorted(describe(store, case, source).counts)


@pytest.mark.parametrize(
    "large", [1 << 20, 0], ids=["small", "large"]
)  # one thread at a time works on large texts
def test_a_case_is_described_by_its_first_changed_stage_or_by_texts_that_show_it_better(
    store, large, monkeypatch
):
    monkeypatch.setattr(artifact_comparator, "_LARGE", large)
    subject = case(store, "ttgir", ONE, TWO)
    assert lines(store, subject) == ["+ttg.optwo", "-ttg.opone"]
    assert lines(store, subject, source(store, TWO, THREE)) == ["+ttg.opthree", "-ttg.optwo"]


def test_texts_are_read_as_what_they_are(store):
    """MLIR in the spelling of older releases, for a newer spelling is no edit; the rest as it is compared."""
    unsized = mlir(SIZED.replace(", allocation.size = 8 : i32", ""), "ttg.optwo")
    sized = case(store, "ttgir", mlir(SIZED, "ttg.opone"), unsized)
    assert lines(store, sized) == ["+ttg.optwo", "-ttg.opone"]
    assert lines(store, case(store, "ptx", PTX, PTX.replace("\tbar.sync 0;\n", ""))) == ["-bar.sync"]


def test_mlir_on_the_way_to_llvm_ir_has_constants_where_they_are_used(store):
    base, head, moved = (
        mlir(f"%0 = llvm.mlir.constant({n} : i32) : i32", f"nvvm.{name} %0 : i32")
        for n, name in ((1, "aa"), (1, "bb"), (2, "aa"))
    )
    subject = case(store, "llir", ONE, TWO)
    assert lines(store, subject, source(store, base, head, "mlir")) == ["+bb", "-aa"]
    other = lines(store, subject, source(store, base, moved, "mlir"))
    assert not [line for line in other if "constant" in line]


@pytest.mark.parametrize(
    ("base", "head"),
    [(ONE, None), (b"not IR", TWO), (ONE, b"not IR"), (b"\xff", TWO), (ONE, b"\xfe")],
    ids=["one side only", "base no IR", "head no IR", "base no text", "head no text"],
)
def test_without_two_texts_what_is_known_describes_it(store, base, head):
    assert lines(store, case(store, "ttgir", base, head)) == ["+ttgir: no text differs"]
    gone = replace(source(store, ONE, TWO), head="0" * 64)
    assert lines(store, case(store, "ttgir", ONE, TWO), gone) == ["+ttgir: no text differs"]
    assert lines(store, case(store, None, ONE, TWO)) == ["+machine code: no text differs"]


def test_an_edited_kernel_with_a_new_argument_is_told_by_what_its_own_ir_does(store):
    """Any edit that adds an argument would have one title else. A signature is no edit of its own."""
    launch = ("kernel: k\n  argument 1: i32\n", "kernel: k\n  argument 1: i32\n  argument 2: i32\n")
    plain = mlir("tt.store %0, %1 : !tt.ptr<f32>", function="tt.func public @k(%0: !tt.ptr<f32>, %1: f32)")
    masked = mlir(
        "tt.store %0, %1, %2 : !tt.ptr<f32>", function="tt.func public @k(%0: !tt.ptr<f32>, %1: f32, %2: i1)"
    )
    texts = [{"launch": text, "ttir": ir} for text, ir in zip(launch, (plain, masked), strict=True)]
    artifacts = Sides(base=runs.kept(store, texts[0]), head=runs.kept(store, texts[1]))
    subject = runs.case("a/x:1@sm_90", Verdict.CHANGED, origin=runs.origin("launch"), artifacts=artifacts)
    before, after = (runs.launch("a/x:1@sm_90", source_digest=digest) for digest in ("one", "two"))

    def title(head):
        return describe(store, subject, launches=Sides(base=before, head=head)).summary.title

    assert title(after) == "`tt.store` now with a mask, one more argument 2"
    assert title(before) == "one more argument 2"  # the same source: all that differs is what is launched
