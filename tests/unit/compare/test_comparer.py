"""One case from its launches to its verdict, with a compiler that has its answers ready."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from irdiff.compare.artifact_comparator import ArtifactComparator
from irdiff.compare.comparer import CaseComparer
from irdiff.model import (
    DEFAULT_OPTIONS,
    Artifact,
    Assembler,
    CaptureFailure,
    Case,
    Compiled,
    Failed,
    Failure,
    FailureKind,
    Launch,
    Outcome,
    Pair,
    Sides,
    StageStatus,
    Target,
    Toolchain,
    Verdict,
)
from irdiff.resolve.corpus import Corpus
from irdiff.resolve.sides import Side
from irdiff.store import Store
from tests.elf_files import content, rebuilt
from tests.programs.mutation.artifacts import of_stage
from tests.unit.findings import told
from tests.unit.no_llvm import no_llvm

IDENTICAL, EQUIVALENT, CHANGED, ABSENT = StageStatus
TARGETS = {
    name: Target(name=name, backend=backend, arch=arch, warp_size=32, title="", facts={}, sources={})
    for name, backend, arch in (("sm_90", "cuda", 90), ("gfx942", "hip", "gfx942"), ("npu", "npu", "a"))
}
TTIR = "module {\n  tt.func @k() {\n    tt.return\n  }\n}\n"
PTX = ".version 8.7\n.target sm_90a\n.visible .entry k()\n{\n\t.loc\t1 2 3\n\tmov.u32 \t%r1, 16;\n\tret;\n}\n"
OTHER_PTX = PTX.replace("16", "17")
RENAMED_PTX = PTX.replace(" k()", " other()")
LATER_PTX = PTX.replace("8.7", "8.8")
ASM = "  op 1\n"
CUBIN = of_stage("cubin", release="3.9.0", target="sm_90")[0].content
OTHER_CUBIN = rebuilt(CUBIN, content(".text.", lambda old: b"\1" + old[1:]))
THIRD_CUBIN = rebuilt(CUBIN, content(".text.", lambda old: b"\2" + old[1:]))
DEBUG_CUBIN = rebuilt(CUBIN, content(".debug_line", lambda old: old + b"more"))
HSACO = of_stage("hsaco", release="3.9.0", target="gfx942")[0].content
AMDGCN = of_stage("amdgcn", release="3.9.0", target="gfx942")[0].text
METADATA = {"shared": 0, "num_warps": 4, "num_ctas": 1, "name": "k"}


@dataclass
class FakeCompiler:
    """Compiles a side to what it was told to, and remembers what it was asked."""

    store: Store
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    again: dict[str, Sequence[Outcome]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    threads: list[int] = field(default_factory=list)
    """That compiled."""

    def keep(self, **texts: str | bytes) -> dict[str, Artifact]:
        found = {}
        for stage, text in texts.items():
            binary = text if isinstance(text, bytes) else text.encode()
            found[stage] = Artifact(stage=stage, digest=self.store.put(binary), size_bytes=len(binary))
        return found

    def compile(self, toolchain: Toolchain, *_: Any, fresh: bool = False) -> Outcome:
        side = toolchain.spec
        self.threads.append(threading.get_ident())
        self.asked.append(f"{side}{' fresh' if fresh else ''}")
        return self.outcomes[f"{side} fresh" if fresh and f"{side} fresh" in self.outcomes else side]

    def recompile(self, toolchain: Toolchain, *_: Any, attempt: int, fresh: bool) -> Outcome:
        self.asked.append(f"{toolchain.spec} again")
        found = self.again.get(toolchain.spec, ())
        return found[attempt % len(found)] if found else self.outcomes[toolchain.spec]


def failed(failure: Failure) -> Failed:
    return Failed(failure=failure, transient=False, artifacts={}, stage_times_s={})


def error(message: str = "it failed") -> Failure:
    return Failure(kind=FailureKind.ERROR, stage="ttgir", message=message, signal=None, stderr="")


@dataclass
class Bench:
    """A comparer and all that it is given; `base` and `head` are the specs of its sides."""

    compiler: FakeCompiler
    launch: Launch
    ptxas: dict[str, Mapping[str, str]] = field(
        default_factory=lambda: {"base": {"ptxas": "x"}, "head": {"ptxas": "x"}}
    )
    use_cache: bool = True
    stages: tuple[str, ...] = ()
    target: str = "sm_90"

    def compiled(
        self, *, notes: tuple[str, ...] = (), metadata: Any = None, **texts: str | bytes
    ) -> Compiled:
        return Compiled(
            handed={},
            artifacts=self.compiler.keep(**texts),
            metadata=METADATA if metadata is None else metadata,
            stage_times_s={"ttir": 0.5},
            stage_cpu_s={"ttir": 0.5},
            assembler=Assembler(digest="p" * 64, flags=("-v",)) if "ptx" in texts else None,
            assembler_log="",
            notes=notes,
        )

    def sides(self, base: Mapping[str, Any], head: Mapping[str, Any]) -> Bench:
        """What each side compiles to."""
        for side, texts in (("base", base), ("head", head)):
            self.compiler.outcomes[side] = self.compiled(**texts)
        return self

    def comparer(self) -> CaseComparer:
        def side(name: str) -> Side:
            toolchain = Toolchain(
                spec=name,
                version="",
                digest=name,
                path="",
                python="",
                root="",
                runtime={},
                programs={f"/triton/ptxas-{program}": digest for program, digest in self.ptxas[name].items()},
                notes=(),
            )
            outcome = self.compiler.outcomes.get(name)
            if isinstance(outcome, Compiled) and outcome.assembler:
                ran = replace(outcome.assembler, digest=self.ptxas[name]["ptxas"])
                self.compiler.outcomes[name] = replace(outcome, assembler=ran)
            return Side(toolchain=toolchain, corpus=Corpus(root=Path(), workloads=(), digest=""), note="")

        options = replace(DEFAULT_OPTIONS, stages=self.stages, use_cache=self.use_cache)
        compiler: Any = self.compiler
        return CaseComparer(
            compiler,
            ArtifactComparator(self.compiler.store, no_llvm),
            Sides(base=side("base"), head=side("head")),
            options,
        )

    @property
    def pair(self) -> Pair:
        return Pair(
            id=f"a/b:c@{self.target}",
            launch_id="a/b:c",
            target=TARGETS[self.target],
            base=self.launch,
            head=self.launch,
            supported=Sides(base=True, head=True),
            moved=False,
        )

    def compare(self, **changes: Any) -> Case:
        return compared(self.comparer(), replace(self.pair, **changes))


def compared(comparer: CaseComparer, pair: Pair) -> Case:
    return comparer.uncompiled(pair) or comparer.compare(pair, comparer.compiled(pair))[0]


@pytest.fixture
def bench(tmp_path: Path, launch: Launch) -> Bench:
    return Bench(compiler=FakeCompiler(store=Store(tmp_path)), launch=launch)


@pytest.mark.parametrize(
    ("base", "head"),
    [
        ({"cubin": CUBIN, "elf": "one"}, {"cubin": CUBIN, "elf": "other"}),
        ({"cubin": CUBIN}, {"cubin": CUBIN, "launcher_src": "text"}),
        ({"cubin": CUBIN, "launcher_src": "text"}, {"cubin": CUBIN}),
    ],
)
def test_no_machine_code_absorbs_what_is_made_of_it(bench: Bench, base: Any, head: Any) -> None:
    bench.compiler.outcomes = {
        "base": bench.compiled(ttir=TTIR, ptx=PTX, **base),
        "head": bench.compiled(ttir=TTIR, ptx=PTX, **head),
    }
    case = bench.compare()
    assert case.verdict is Verdict.CHANGED
    assert case.origin is not None and case.origin.stage in ("elf", "launcher_src")


@pytest.mark.parametrize("head", [RENAMED_PTX, LATER_PTX, OTHER_PTX], ids=["name", "version", "code"])
def test_machine_code_absorbs_what_differs_above_it(bench: Bench, head: str) -> None:
    case = bench.sides({"ptx": PTX, "cubin": CUBIN}, {"ptx": head, "cubin": DEBUG_CUBIN}).compare()
    assert case.stages["sass"] is EQUIVALENT
    assert case.verdict is (Verdict.ABSORBED if head == OTHER_PTX else Verdict.UNCHANGED)


def test_both_sides_compile_at_once(bench: Bench) -> None:
    bench.sides({"ttir": TTIR, "ptx": PTX}, {"ttir": TTIR, "ptx": PTX}).compare()
    assert len(set(bench.compiler.threads)) == 2


def test_equal_launches_are_compiled_where_toolchains_differ_or_nothing_is_left_out(bench: Bench) -> None:
    sides = {"ttir": TTIR, "ptx": PTX, "cubin": CUBIN}
    case = bench.sides(sides, sides).compare()
    assert (case.verdict, told(case.findings)) == (Verdict.UNCHANGED, ())
    assert sorted(bench.compiler.asked) == ["base", "head"]
    bench.use_cache = False
    comparer = bench.comparer()
    comparer.sides = Sides(base=comparer.sides.base, head=comparer.sides.base)
    assert comparer.uncompiled(bench.pair) is None
    unknown = replace(bench.launch, digest=None)
    bench.use_cache = True
    comparer = bench.comparer()
    comparer.sides = Sides(base=comparer.sides.base, head=comparer.sides.base)
    assert comparer.uncompiled(bench.pair) is not None
    assert comparer.uncompiled(replace(bench.pair, base=unknown, head=unknown)) is None


def test_ptx_that_is_no_text_is_the_same_only_to_the_byte(bench: Bench) -> None:
    ours, theirs = {"ptx": b"\0one", "cubin": CUBIN}, {"ptx": b"\0two", "cubin": OTHER_CUBIN}
    case = bench.sides(ours, theirs).compare()
    assert case.verdict is Verdict.CHANGED
    assert told(case.findings) == ("compared-as-bytes:ptx",)


def test_what_is_not_ptx_is_not_normalized(bench: Bench) -> None:
    case = bench.sides({"ptx": "one", "cubin": CUBIN}, {"ptx": "two", "cubin": CUBIN}).compare()
    assert case.verdict is Verdict.ABSORBED
    assert told(case.findings)[0].startswith("not-normalized:ptx")


# machine code


def test_the_same_text_that_the_assembler_allocates_otherwise_has_changed(bench: Bench) -> None:
    bench.sides({"ptx": PTX, "cubin": CUBIN}, {"ptx": RENAMED_PTX, "cubin": OTHER_CUBIN})
    case = bench.compare()
    assert (case.verdict, case.stages["ptx"], case.stages["sass"]) == (Verdict.CHANGED, EQUIVALENT, CHANGED)
    assert told(case.findings) == ("assembler-allocated-otherwise",)
    assert case.origin is not None
    assert case.origin.stage == "sass"


@pytest.mark.parametrize("head", [RENAMED_PTX, PTX])
def test_a_nondeterministic_assembler_that_gives_both_the_same_has_not(bench: Bench, head: str) -> None:
    bench.use_cache = False
    bench.sides({"ptx": PTX, "cubin": CUBIN}, {"ptx": head, "cubin": OTHER_CUBIN})
    bench.compiler.again["base"] = [
        failed(error()),
        bench.compiled(ptx=PTX),
        bench.compiled(ptx=PTX, cubin=THIRD_CUBIN),
        bench.compiled(ptx=PTX, cubin=OTHER_CUBIN),
    ]
    case = bench.compare()
    assert (case.verdict, told(case.findings)) == (Verdict.UNCHANGED, ("assembler-sets-intersect",))


@pytest.mark.parametrize(
    ("head", "ptxas"),
    [(OTHER_PTX, "x"), (LATER_PTX, "x"), (RENAMED_PTX, "y")],
    ids=["code", "version", "ptxas"],
)
def test_other_causes_are_not_charged_to_the_allocation(bench: Bench, head: str, ptxas: str) -> None:
    bench.ptxas["head"] = {"ptxas": ptxas}
    case = bench.sides({"ptx": PTX, "cubin": CUBIN}, {"ptx": head, "cubin": OTHER_CUBIN}).compare()
    assert case.verdict is Verdict.CHANGED
    assert told(case.findings) == ()


def test_another_assembler_is_not_asked_for_its_noise(bench: Bench) -> None:
    """What it makes of the same text is its own, and different: nothing is compiled again to see that."""
    bench.ptxas["head"] = {"ptxas": "y"}
    case = bench.sides({"ptx": PTX, "cubin": CUBIN}, {"ptx": RENAMED_PTX, "cubin": OTHER_CUBIN}).compare()
    assert (case.verdict, case.stages["ptx"]) == (Verdict.CHANGED, EQUIVALENT)
    assert not any("again" in asked for asked in bench.compiler.asked)


def test_code_objects_are_compared_as_binaries(bench: Bench) -> None:
    bench.target = "gfx942"
    note = rebuilt(HSACO, content(".rodata", lambda old: b"\1" + old[1:]))
    ours, theirs = {"amdgcn": AMDGCN, "hsaco": HSACO}, {"amdgcn": AMDGCN, "hsaco": note}
    case = bench.sides(ours, theirs).compare()
    assert (case.verdict, case.stages["amdgcn"]) == (Verdict.CHANGED, CHANGED)
    assert case.facts.base["vgprs"] == case.facts.head["vgprs"]
    assert bench.sides(ours, ours).compare().verdict is Verdict.UNCHANGED


# what was not compared


@pytest.mark.parametrize("stages", [(), ("ttir",), ("sass",)])
@pytest.mark.parametrize(
    ("head", "finding", "origin"),
    [
        ({"npuasm": ASM}, "not-compared:asm,npuasm", "asm"),
        ({}, "not-compared:asm,ttir", "asm"),
    ],
)
def test_a_last_stage_that_one_side_lacks_is_not_unchanged(
    bench: Bench, head: dict[str, str], finding: str, origin: str, stages: tuple[str, ...]
) -> None:
    bench.target, bench.stages = "npu", stages
    case = bench.sides({"ttir": TTIR, "asm": ASM}, {"ttir": TTIR, **head}).compare()
    assert (case.verdict, told(case.findings)) == (Verdict.CHANGED, (finding,))
    assert case.origin is not None
    assert case.origin.stage == origin


@pytest.mark.parametrize("stages", [(), ("ttir",), ("npuasm",)])
@pytest.mark.parametrize(("head", "verdict"), [(ASM, Verdict.UNCHANGED), ("  op 2\n", Verdict.CHANGED)])
def test_the_last_texts_of_a_backend_without_binaries_decide(bench: Bench, head, verdict, stages) -> None:
    bench.target, bench.stages = "npu", stages
    case = bench.sides({"ttir": TTIR, "asm": ASM}, {"ttir": TTIR, "asm": head}).compare()
    assert case.verdict is verdict
    assert "machine-code-as-text:no-binary" in told(case.findings)


def test_assembly_decides_where_one_side_has_no_linker(bench: Bench) -> None:
    bench.target = "gfx942"
    ours, theirs = {"amdgcn": AMDGCN, "notes": ("no-linker",)}, {"amdgcn": AMDGCN, "hsaco": HSACO}
    case = bench.sides(ours, theirs).compare()
    assert (case.verdict, told(case.findings)) == (Verdict.UNCHANGED, ("machine-code-as-text:no-linker",))


def test_a_binary_that_one_side_lacks_is_not_unchanged(bench: Bench) -> None:
    bench.target = "gfx942"
    case = bench.sides({"amdgcn": AMDGCN}, {"amdgcn": AMDGCN, "hsaco": HSACO}).compare()
    assert (case.verdict, told(case.findings)) == (Verdict.CHANGED, ("not-compared:amdgcn,hsaco",))
    assert case.stages["amdgcn"] is ABSENT


# launches


def test_an_entry_of_a_release_to_come_is_seen(bench: Bench) -> None:
    later = {**METADATA, "launch_in_waves": True, "name": "other"}
    sides = {"ptx": PTX, "cubin": CUBIN}
    case = bench.sides(sides, {**sides, "metadata": later}).compare()
    assert case.verdict is Verdict.CHANGED
    assert told(case.findings) == ("launch-differs:launch_in_waves",)
    assert case.origin is not None
    assert case.origin.stage == "launch"
    assert case.metadata.head["launch_in_waves"]


def test_another_specialization_is_told(bench: Bench) -> None:
    other = replace(bench.launch, signature={"x": "*fp16"}, constexprs={"BLOCK": "16"}, digest="2")
    sides = {"ptx": PTX, "cubin": CUBIN}
    case = bench.sides(sides, sides).compare(head=other)
    assert told(case.findings) == ("specialization-differs:signature,constexprs",)


def test_removed_launches_and_equal_inputs_compile_nothing(bench: Bench) -> None:
    assert bench.compare(head=None).verdict is Verdict.REMOVED
    comparer = bench.comparer()
    comparer.sides = Sides(base=comparer.sides.base, head=comparer.sides.base)
    pair = bench.pair
    assert told(compared(comparer, pair).findings) == ("not-compiled:same-input",)
    assert bench.compiler.asked == []
    # what is expected to fail is no `unchanged` of two sides that compile nothing
    unexpected = replace(bench.launch, expected=False)
    bench.compiler.outcomes = {"base": failed(error()), "head": failed(error())}
    assert compared(comparer, replace(pair, base=unexpected, head=unexpected)).verdict is Verdict.FAILING


# failures


def test_a_side_that_fails_breaks_or_fixes(bench: Bench) -> None:
    bench.sides({"ttir": TTIR, "ptx": PTX}, {"ttir": TTIR, "ptx": PTX})
    compiled = bench.compiler.outcomes["base"]
    bench.compiler.outcomes["head"] = failed(error())
    case = bench.compare()
    assert (case.verdict, case.error) == (Verdict.BROKEN, "head: it failed")
    assert set(case.artifacts.base) == {"launch", "ttir", "ptx"}
    bench.compiler.outcomes = {"base": failed(error()), "head": compiled}
    assert bench.compare().verdict is Verdict.FIXED
    bench.compiler.outcomes = {"base": failed(error()), "head": failed(error())}
    assert bench.compare().verdict is Verdict.FAILING


FAILS_TO_LAUNCH = CaptureFailure(id="a/b:c", expected=True, failure=error("no such option"))


@pytest.mark.parametrize(
    ("base", "compiles", "verdict"),
    [
        (None, True, Verdict.ADDED),
        (None, False, Verdict.FAILING),
        (FAILS_TO_LAUNCH, True, Verdict.FIXED),
        (FAILS_TO_LAUNCH, False, Verdict.FAILING),
    ],
)
def test_what_head_alone_launches_is_compiled(
    bench: Bench, base: CaptureFailure | None, compiles: bool, verdict: Verdict
) -> None:
    bench.compiler.outcomes = {"head": bench.compiled(ttir=TTIR, ptx=PTX) if compiles else failed(error())}
    case = bench.compare(base=base)
    assert case.verdict is verdict
    assert ("head: it failed" in (case.error or "")) is not compiles
    assert bench.compiler.asked == ["head"]


@pytest.mark.parametrize(("compiles", "verdict"), [(True, Verdict.BROKEN), (False, Verdict.FAILING)])
def test_what_head_does_not_launch_is_broken_only_where_base_compiles_it(
    bench: Bench, compiles: bool, verdict: Verdict
) -> None:
    bench.compiler.outcomes = {"base": bench.compiled(ttir=TTIR, ptx=PTX) if compiles else failed(error())}
    case = bench.compare(head=FAILS_TO_LAUNCH)
    assert case.verdict is verdict
    assert "head: no such option" in (case.error or "")


# the store


def test_a_damaged_artifact_is_compiled_again(bench: Bench) -> None:
    bench.sides({"ptx": PTX, "cubin": CUBIN}, {"ptx": RENAMED_PTX, "cubin": CUBIN})
    whole = bench.compiler.outcomes["base"]
    gone = Artifact(stage="ptx", digest="0" * 64, size_bytes=1)
    bench.compiler.outcomes = {
        **bench.compiler.outcomes,
        "base": replace(whole, artifacts={**whole.artifacts, "ptx": gone}),
        "base fresh": whole,
    }
    assert bench.compare().verdict is Verdict.UNCHANGED
    assert sorted(bench.compiler.asked) == ["base", "base fresh", "head", "head fresh"]
