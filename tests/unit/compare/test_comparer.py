"""Artifacts, and one case from its launches to its verdict, with a compiler that has its answers ready."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from irdiff.compare import artifact_comparator as module
from irdiff.compare.artifact_comparator import ArtifactComparator, DamagedArtifactError, intact
from irdiff.compare.comparer import CaseComparer
from irdiff.compile.compilation import CaseCompiler
from irdiff.errors import NormalizeError
from irdiff.ir.canonical import Printed
from irdiff.model import (
    DEFAULT_OPTIONS,
    Artifact,
    Assembler,
    CaptureFailure,
    Compiled,
    Launch,
    Outcome,
    Sides,
    StageStatus,
    Target,
    Verdict,
)  # fmt: skip
from irdiff.store import Store
from tests.programs.mutation.artifacts import of_stage
from tests.unit import compiled, runs
from tests.unit.compiled import CUBIN, DEBUG_CUBIN, HSACO, OTHER_CUBIN, PTX, THIRD_CUBIN, coded, mlir, no_llvm
from tests.unit.golden import golden
from tests.unit.runs import told

GOLDEN = golden("cases")
NPU = runs.blank(Target, name="npu", backend="npu", arch="a", warp_size=32)
TTIR = mlir()
RENAMED_PTX = PTX.replace(" k()", " other()")
TEXTS = {
    **vars(compiled), "OTHER_TTIR": mlir("op.a"), "RENAMED_PTX": RENAMED_PTX, "LATER_PTX": PTX.replace("8.7", "8.8"),
    "OTHER_HSACO": coded(HSACO, ".rodata", b"\1"), "ASM": "  op 1\n", "OTHER_ASM": "  op 2\n",
}  # fmt: skip
METADATA = {"shared": 0, "num_warps": 4, "num_ctas": 1, "name": "k"}
WHOLE = {"ttir": TTIR, "ptx": PTX, "cubin": CUBIN}
FAILS = runs.failed()
REFUSED = runs.failed(message="no such option").failure
LAUNCHES = {"none": None, "fails": CaptureFailure(id="a/b:c", expected=True, failure=REFUSED)}


def texts(names):
    """By stage; a word that names no text is one itself."""
    return {stage: TEXTS.get(name, name) for stage, name in names.items()}


@dataclass
class FakeCompiler:
    """Compiles a side to what the test has set."""

    store: Store
    launch: Launch
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    again: dict[str, Sequence[Outcome]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    target: Target = field(default_factory=runs.target)

    def compiled(self, **changes):
        """Artifacts by stage, and fields of `Compiled`."""
        fields = {name: changes.pop(name) for name in set(Compiled.__dataclass_fields__) & changes.keys()}
        assembler = Assembler(digest="p" * 64, flags=("-v",)) if "ptx" in changes else None
        plain = {"metadata": METADATA, "assembler": assembler, **fields}
        return runs.compiled(runs.kept(self.store, changes), **plain)

    def compile(self, of, *_, attempt=None):
        side = of.toolchain.spec
        if attempt is not None:
            self.asked.append(f"{side} again")
            found = self.again.get(side, ())
            return found[attempt % len(found)] if found else self.outcomes[side]
        self.asked.append(side)
        again = f"{side} again" if self.asked.count(side) > 1 else side
        return self.outcomes.get(again, self.outcomes[side])

    def case(self, base=None, head=None, *, sides=("base", "head"), stages=(), use_cache=True, pair=()):
        """The case of two sides, each an outcome or its artifacts."""
        for name, made in (("base", base), ("head", head)):
            if made is not None:
                self.outcomes[name] = self.compiled(**made) if isinstance(made, dict) else made
        both = Sides(base=runs.side(sides[0]), head=runs.side(sides[1]))
        options = replace(DEFAULT_OPTIONS, stages=stages, use_cache=use_cache)
        comparer = CaseComparer(self, ArtifactComparator(self.store, no_llvm), both, options)
        compiler = CaseCompiler(self, both, reuse=use_cache)
        launches = {"base": self.launch, "head": self.launch, **dict(pair)}
        whole = runs.pair(f"a/b:c@{self.target.name}", **launches, target=self.target)
        return intact(lambda: comparer.compare(compiler.compile(whole)))


@pytest.fixture
def compiler(tmp_path, launch):
    return FakeCompiler(store=Store(tmp_path), launch=launch)


@pytest.mark.parametrize("row", GOLDEN["verdict"], ids=str)
def test_verdicts(compiler, row):
    base = {**WHOLE, **texts(row.get("base", {}))}
    case = compiler.case(base, {**base, **texts(row["head"])})
    wanted = row.get("findings", [])
    found = [name[: len(words)] for name, words in zip(told(case.findings), wanted, strict=True)]
    assert (case.verdict, found) == (row["verdict"], wanted)
    assert row.get("stages", {}).items() <= case.stages.items()
    assert (case.origin is None) == (case.verdict is Verdict.UNCHANGED)


@pytest.mark.parametrize("row", GOLDEN["amd"], ids=str)
def test_verdicts_of_amd(compiler, row):
    compiler.target = runs.target("gfx942")
    base = {**texts(row["base"]), "notes": tuple(row.get("notes", ()))}
    case = compiler.case(base, texts({"amdgcn": "AMDGCN", "hsaco": row["hsaco"]}))
    assert (case.verdict, case.stages["amdgcn"]) == (row["verdict"], row["amdgcn"])
    assert [*told(case.findings)] == row.get("findings", [])


@pytest.mark.parametrize("head", [RENAMED_PTX, PTX], ids=["renamed", "same"])
def test_a_nondeterministic_assembler_that_gives_both_the_same_has_not_changed(compiler, head):
    made = ({}, {"cubin": THIRD_CUBIN}, {"cubin": OTHER_CUBIN})
    compiler.again["base"] = [FAILS, *(compiler.compiled(ptx=PTX, **cubin) for cubin in made)]
    case = compiler.case(WHOLE, {**WHOLE, "ptx": head, "cubin": OTHER_CUBIN})
    assert (case.verdict, told(case.findings)) == (Verdict.UNCHANGED, ("assembler-sets-intersect",))


def test_another_assembler_is_not_asked_for_its_noise(compiler):
    """Its code for the same text is its own: nothing is compiled again to see that."""
    other = Assembler(digest="y" * 64, flags=("-v",))
    case = compiler.case(WHOLE, {**WHOLE, "ptx": RENAMED_PTX, "cubin": OTHER_CUBIN, "assembler": other})
    assert (case.verdict, told(case.findings)) == (Verdict.CHANGED, ())
    assert case.stages["ptx"] is StageStatus.EQUIVALENT
    assert not any("again" in asked for asked in compiler.asked)


@pytest.mark.parametrize("stages", [(), ("ttir",), ("npuasm",)])
@pytest.mark.parametrize("row", GOLDEN["last_texts"], ids=str)
def test_the_last_texts_of_a_backend_without_binaries_decide(compiler, row, stages):
    compiler.target = NPU
    base, head = (texts({"ttir": "module {}", **names}) for names in ({"asm": "ASM"}, row["head"]))
    case = compiler.case(base, head, stages=stages)
    assert (case.verdict, case.origin and case.origin.stage) == (row["verdict"], row.get("first"))
    assert row["finding"] in told(case.findings)


@pytest.mark.parametrize("row", GOLDEN["launcher"], ids=str)
def test_what_the_launcher_receives_counts(compiler, row):
    head = {
        **WHOLE,
        "metadata": {**METADATA, **row.get("metadata", {})},
        "launcher_args": row.get("launcher_args", {}),
    }
    case = compiler.case(WHOLE, {**head, "ttir": TEXTS.get(row.get("ttir"), TTIR)})
    assert (case.verdict, told(case.findings)) == (Verdict.CHANGED, (f"launch-differs:{row['differs']}",))
    assert (case.origin and case.origin.stage, case.stages["launch"]) == (row["first"], row["launch"])
    assert case.metadata.head == head["metadata"]


def test_another_specialization_is_a_finding(compiler):
    other = replace(compiler.launch, signature={"x": "*fp16"}, constexprs={"BLOCK": "16"}, digest="2")
    case = compiler.case(WHOLE, WHOLE, pair={"head": other})
    assert told(case.findings) == ("specialization-differs:signature,constexprs",)


@pytest.mark.parametrize("same_toolchain", [True, False])
@pytest.mark.parametrize("use_cache", [True, False])
@pytest.mark.parametrize("digest", ["0" * 64, None])
def test_only_equal_launches_under_equal_toolchains_are_compiled_once(
    compiler, same_toolchain, use_cache, digest
):
    compiler.launch = replace(compiler.launch, digest=digest)
    sides = ("base", "base") if same_toolchain else ("base", "head")
    case = compiler.case(WHOLE, WHOLE, sides=sides, use_cache=use_cache)
    assert case.verdict is Verdict.UNCHANGED
    skips = same_toolchain and use_cache and digest is not None
    assert told(case.findings) == (("not-compiled:same-input",) if skips else ())
    assert (compiler.asked == ["base"]) == skips


def test_equal_launches_whose_stages_read_a_file_are_compared(compiler):
    """Each side has files of its own, and may have other content there."""
    reading = {**WHOLE, "opened": {"tuned.json": "d" * 64}}
    case = compiler.case(reading, sides=("base", "base"))
    assert (case.verdict, told(case.findings)) == (Verdict.UNCHANGED, ())
    assert compiler.asked == ["base"] * 3


def test_a_side_that_fails_breaks_or_fixes(compiler):
    case = compiler.case(WHOLE, FAILS)
    assert (case.verdict, case.error) == (Verdict.BROKEN, "head: it failed")
    assert set(case.artifacts.base) == {"launch", *WHOLE}
    assert compiler.case(FAILS, WHOLE).verdict is Verdict.FIXED
    assert compiler.case(FAILS, FAILS).verdict is Verdict.FAILING
    case = compiler.case(FAILS, FAILS, sides=("base", "base"))
    assert case.verdict is Verdict.FAILING, "without machine code nothing is unchanged, though the input is"


@pytest.mark.parametrize("row", GOLDEN["one_side"], ids=str)
def test_what_one_side_alone_launches_is_compiled_there(compiler, row):
    launches, compiles = row["launches"], row.get("compiles")
    compiler.outcomes = dict.fromkeys(("base", "head"), compiler.compiled(**WHOLE) if compiles else FAILS)
    case = compiler.case(pair={side: LAUNCHES[how] for side, how in launches.items()})
    assert (case.verdict, case.error) == (row["verdict"], row.get("error"))
    assert compiler.asked == ([] if compiles is None else [*({"base", "head"} - {*launches})])
    assert case.launches.base == (compiler.launch.key if "base" not in launches else None)
    assert bool(case.facts.head) is (case.verdict is Verdict.ADDED), "it is new, and has its figures"
    assert set(case.artifacts.head) == ({"launch", *WHOLE} if case.facts.head else set())


def test_a_damaged_artifact_is_compiled_again(compiler):
    whole = compiler.compiled(**WHOLE)
    gone = Artifact(stage="ptx", digest="0" * 64, size_bytes=1)
    compiler.outcomes["base again"] = whole
    damaged = replace(whole, artifacts={**whole.artifacts, "ptx": gone})
    assert compiler.case(damaged, {**WHOLE, "ptx": RENAMED_PTX}).verdict is Verdict.UNCHANGED
    assert sorted(compiler.asked) == ["base", "base", "head", "head"]


@pytest.fixture
def comparator(tmp_path):
    return ArtifactComparator(Store(tmp_path), no_llvm)


@pytest.mark.parametrize(
    ("stage", "base", "head", "same"),
    [
        ("ttgir", b"not IR", b"not IR", True),
        ("ttgir", b"not IR", b"nor this", False),
        ("ttgir", b"\xff", b"\xfe", False),
        ("llir", b"define void @k() {\n  ret void\n}\n", b"; c\ndefine void @k() {\n  ret void\n}\n", True),
        ("cubin", CUBIN, DEBUG_CUBIN, True),
        ("cubin", CUBIN, OTHER_CUBIN, False),
    ],
)
def test_artifacts_are_compared_as_what_they_are(comparator, stage, base, head, same):
    assert comparator.same(stage, comparator.store.put(base), comparator.store.put(head)) is same


def test_what_is_damaged_or_gone_is_the_same_as_nothing(comparator):
    with pytest.raises(NormalizeError):
        comparator.same("cubin", *(comparator.store.put(content) for content in (b"no ELF", b"nor this")))
    with pytest.raises(DamagedArtifactError):
        comparator.same("ttgir", comparator.store.put(b"module {\n}\n"), "0" * 64)


def test_texts_are_kept_up_to_a_bound_and_those_asked_for_last_longest(comparator, monkeypatch):
    artifacts = of_stage("ttgir")[:3]
    one, two, three = (comparator.store.put(artifact.content) for artifact in artifacts)
    monkeypatch.setattr(module, "_KEPT_CHARACTERS", sum(len(artifact.text) for artifact in artifacts) - 1)
    first, second = (comparator.text("ttgir", digest) for digest in (one, two))
    for digest in (one, three):
        comparator.text("ttgir", digest)
    assert comparator.text("ttgir", one) is first
    assert comparator.text("ttgir", two) is not second, "it was asked for longest ago"


@pytest.mark.parametrize(("why_not", "times"), [("died", 2), ("unavailable", 2), ("too-long", 1)])
def test_a_reader_that_failed_is_asked_again(tmp_path, why_not, times):
    asked = []
    failed = Printed(text=None, why_not=why_not)
    comparator = ArtifactComparator(Store(tmp_path), lambda text: asked.append(text) or failed)
    llir = "define i32 @k(i32 %x) {\n  ret i32 SOME\n}\n"
    base, head = (comparator.store.put(llir.replace("SOME", value).encode()) for value in ("%x", "1"))
    for _ in range(2):
        assert not comparator.same("llir", base, head)
    assert len(asked) == times
