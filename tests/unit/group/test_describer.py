"""Descriptions are made of the texts that show an edit best, once, and again by another irdiff."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from irdiff.compare.artifact_comparator import ArtifactComparator
from irdiff.compare.edits import Edit, EditSource
from irdiff.group import describer
from irdiff.group.describer import CaseDescriber
from irdiff.group.grouping import Description, describe
from irdiff.model import Artifact, Case, Launch, Origin, Sides, Verdict
from irdiff.store import Store
from tests.unit.no_llvm import no_llvm


def mlir(*operations: str) -> bytes:
    body = "".join(f"    {line}\n" for line in operations)
    return f"module {{\n  tt.func public @k() {{\n{body}    tt.return\n  }}\n}}\n".encode()


ONE, TWO, THREE = (mlir(f"ttg.op{name}") for name in ("one", "two", "three"))
PTX = (
    b".version 8.7\n.target sm_90a\n.visible .entry k()\n{\n\tmov.u32 \t%r1, 16;\n\tbar.sync 0;\n\tret;\n}\n"
)


@dataclass
class Bench:
    store: Store
    build: Any
    made: list[Edit | None]

    def case(self, stage: str | None, base: bytes, head: bytes | None, **changes: Any) -> Case:
        rows = []
        for text in (base, head):
            name = stage or "ttgir"
            digest = self.store.put(text) if text is not None else ""
            found = {name: Artifact(stage=name, digest=digest, size_bytes=1)} if text is not None else {}
            rows.append(found)
        origin = Origin(stage=stage, pass_name=None, masked=(), charged=(), note="") if stage else None
        made: Case = self.build.case(
            "a/x:1@sm_90",
            Verdict.CHANGED,
            origin=origin,
            artifacts=Sides(base=rows[0], head=rows[1]),
            **changes,
        )
        return made

    def describe(self, case: Case, source: EditSource | None = None) -> Description:
        return CaseDescriber(ArtifactComparator(self.store, no_llvm)).describe(case, source)

    def lines(self, case: Case, source: EditSource | None = None) -> list[str]:
        return sorted(self.describe(case, source).counts)

    def source(self, base: bytes, head: bytes, ir: str = "ttgir") -> EditSource:
        return EditSource(ir=ir, base=self.store.put(base), head=self.store.put(head))


@pytest.fixture
def bench(tmp_path: Path, build: Any, monkeypatch: pytest.MonkeyPatch) -> Bench:
    made: list[Edit | None] = []

    def counted(case: Case, edit: Edit | None, launches: Sides[Launch | None]) -> Description:
        made.append(edit)
        return describe(case, edit, launches)

    monkeypatch.setattr(describer, "describe", counted)
    return Bench(Store(tmp_path), build, made)


def test_a_case_is_described_by_the_texts_of_its_first_changed_stage(bench: Bench) -> None:
    assert bench.lines(bench.case("ttgir", ONE, TWO)) == ["+ttg.optwo", "-ttg.opone"]


def test_texts_that_show_it_better_are_taken_instead(bench: Bench) -> None:
    found = bench.lines(bench.case("ttgir", ONE, TWO), bench.source(TWO, THREE))
    assert found == ["+ttg.opthree", "-ttg.optwo"]


SPELLED = mlir("%0 = tt.histogram {allocation.offset = 0 : i32, allocation.size = 8 : i32} : i32")
CAST = b"module {\n  llvm.func @k() {\n    %0 = llvm.mlir.constant(1 : i32) : i32\n    llvm.return %0 : i32\n  }\n}\n"


def test_texts_are_read_as_what_they_are(bench: Bench) -> None:
    """MLIR in the spelling of older releases, for a newer spelling is no edit; the rest as it is compared."""
    sized = mlir(
        "%0 = tt.histogram {allocation.offset = 0 : i32, allocation.size = 8 : i32} : i32", "ttg.opone"
    )
    unsized = mlir("%0 = tt.histogram {allocation.offset = 0 : i32} : i32", "ttg.optwo")
    assert bench.lines(bench.case("ttgir", sized, unsized)) == ["+ttg.optwo", "-ttg.opone"]
    assert bench.lines(bench.case("ptx", PTX, PTX.replace(b"\tbar.sync 0;\n", b""))) == ["-bar.sync"]


@pytest.mark.parametrize(
    ("base", "head"),
    [(ONE, None), (b"not IR", TWO), (ONE, b"not IR"), (b"\xff", TWO), (ONE, b"\xfe")],
    ids=["one side only", "base no IR", "head no IR", "base no text", "head no text"],
)
def test_without_two_texts_what_is_known_describes_it(bench: Bench, base: bytes, head: bytes | None) -> None:
    assert bench.lines(bench.case("ttgir", base, head)) == ["+ttgir: no text differs"]
    assert bench.made == [None]


@pytest.mark.parametrize("side", ["base", "head"])
def test_a_text_that_is_gone_is_none(bench: Bench, side: str) -> None:
    source = replace(bench.source(ONE, TWO), **{side: "0" * 64})
    assert bench.lines(bench.case("ttgir", ONE, TWO), source) == ["+ttgir: no text differs"]


def test_a_case_without_an_origin_has_no_texts(bench: Bench) -> None:
    assert bench.lines(bench.case(None, ONE, TWO)) == ["+machine code: no text differs"]


def test_mlir_on_the_way_to_llvm_ir_is_read_without_what_that_has_no_place_for(bench: Bench) -> None:
    constant = "%0 = llvm.mlir.constant(1 : i32) : i32"
    base, head = (mlir(constant, f"nvvm.{name} %0 : i32") for name in ("aa", "bb"))
    moved = mlir("%0 = llvm.mlir.constant(2 : i32) : i32", "nvvm.aa %0 : i32")
    found = bench.lines(bench.case("llir", ONE, TWO), bench.source(base, head, ir="mlir"))
    assert found == ["+bb", "-aa"]
    other = bench.lines(bench.case("llir", ONE, TWO), bench.source(base, moved, ir="mlir"))
    assert not [line for line in other if "constant" in line], "a constant stands where it is used"


def test_another_launch_makes_another_description(bench: Bench) -> None:
    case = bench.case("ttgir", ONE, TWO)
    four, eight = (bench.build.launch(case.id, options={"num_warps": n}, digest=n * 64) for n in ("4", "8"))
    describer_of = CaseDescriber(ArtifactComparator(bench.store, no_llvm))
    plain = describer_of.describe(case, None)
    same = describer_of.describe(case, None, Sides(base=four, head=four))
    told = describer_of.describe(case, None, Sides(base=four, head=eight))
    assert len(bench.made) == 3
    assert "`num_warps` 4 → 8" in told.summary.title
    assert "num_warps" not in plain.summary.title + same.summary.title
