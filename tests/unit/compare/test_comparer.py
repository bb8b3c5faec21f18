"""One case from its launches to its verdict, with a compiler that has its answers ready."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from irdiff.compare.artifact_comparator import ArtifactComparator
from irdiff.compare.comparer import CaseComparer
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
from tests.unit import runs
from tests.unit.compiled import (
    AMDGCN,
    CUBIN,
    DEBUG_CUBIN,
    HSACO,
    OTHER_CUBIN,
    OTHER_PTX,
    PTX,
    THIRD_CUBIN,
    coded,
    no_llvm,
)
from tests.unit.runs import told

IDENTICAL, EQUIVALENT, CHANGED, ABSENT = StageStatus
NPU = runs.blank(Target, name="npu", backend="npu", arch="a", warp_size=32)
TTIR = "module {\n  tt.func @k() {\n    tt.return\n  }\n}\n"
OTHER_TTIR = TTIR.replace("tt.return", "op.a\n    tt.return")
RENAMED_PTX = PTX.replace(" k()", " other()")
LATER_PTX = PTX.replace("8.7", "8.8")
ASM = "  op 1\n"
OTHER_HSACO = coded(HSACO, ".rodata", b"\1")
METADATA = {"shared": 0, "num_warps": 4, "num_ctas": 1, "name": "k"}
WHOLE = {"ttir": TTIR, "ptx": PTX, "cubin": CUBIN}
FAILS = runs.failed()
FAILS_TO_LAUNCH = CaptureFailure(
    id="a/b:c", expected=True, failure=runs.failed(message="no such option").failure
)


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
        comparer = CaseComparer(
            self,
            ArtifactComparator(self.store, no_llvm),
            Sides(base=runs.side(sides[0]), head=runs.side(sides[1])),
            replace(DEFAULT_OPTIONS, stages=stages, use_cache=use_cache),
        )
        launches = {"base": self.launch, "head": self.launch, **dict(pair)}
        whole = runs.pair(f"a/b:c@{self.target.name}", **launches, target=self.target)
        return comparer.uncompiled(whole) or comparer.compare(whole, comparer.compiled(whole))[0]


@pytest.fixture
def compiler(tmp_path, launch):
    return FakeCompiler(store=Store(tmp_path), launch=launch)


@pytest.mark.parametrize(
    ("changes", "verdict", "findings", "stages"),
    [
        # machine code absorbs what differs above it
        ({"ptx": RENAMED_PTX, "cubin": DEBUG_CUBIN}, "unchanged", (), {"ptx": EQUIVALENT}),
        ({"ptx": LATER_PTX, "cubin": DEBUG_CUBIN}, "unchanged", (), {"ptx": EQUIVALENT}),
        ({"ptx": OTHER_PTX, "cubin": DEBUG_CUBIN}, "absorbed", (), {"sass": EQUIVALENT}),
        ({"ptx": OTHER_PTX, "cubin": OTHER_CUBIN}, "changed", (), {"ptx": CHANGED}),
        # but not what follows the binary, or is no text of its stage
        ({"elf": "other"}, "changed", ("generic-normalizer:elf",), {"elf": CHANGED}),
        ({"launcher_src": "text"}, "changed", (), {"launcher_src": ABSENT}),
        ({"ptx": b"\0two"}, "absorbed", ("compared-as-bytes:ptx",), {}),
        ({"ptx": "no PTX"}, "absorbed", ("not-normalized:ptx",), {}),
        # an assembler's own noise
        ({"ptx": RENAMED_PTX, "cubin": OTHER_CUBIN}, "changed", ("assembler-allocated-otherwise",),
         {"ptx": EQUIVALENT, "sass": CHANGED}),
        ({"ptx": LATER_PTX, "cubin": OTHER_CUBIN}, "changed", (), {}),
    ],
)  # fmt: skip
def test_verdicts(compiler, changes, verdict, findings, stages):
    base = {**WHOLE, "elf": "one"} if "elf" in changes else WHOLE
    case = compiler.case(base, {**WHOLE, **changes})
    found = tuple(name[: len(wanted)] for name, wanted in zip(told(case.findings), findings, strict=True))
    assert (case.verdict, found) == (verdict, findings)
    assert stages.items() <= case.stages.items()
    assert (case.origin is None) == (verdict == "unchanged")


AMD = {"amdgcn": AMDGCN, "hsaco": HSACO}


@pytest.mark.parametrize(
    ("base", "hsaco", "verdict", "findings", "status"),
    [
        (AMD, HSACO, "unchanged", (), IDENTICAL),
        (AMD, OTHER_HSACO, "changed", (), CHANGED),
        ({"amdgcn": AMDGCN, "notes": ("no-linker",)}, HSACO, "unchanged",
         ("machine-code-as-text:no-linker",), IDENTICAL),
        ({"amdgcn": AMDGCN}, HSACO, "changed", ("not-compared:amdgcn,hsaco",), ABSENT),
    ],
)  # fmt: skip
def test_verdicts_of_amd(compiler, base, hsaco, verdict, findings, status):
    compiler.target = runs.target("gfx942")
    case = compiler.case(base, {**AMD, "hsaco": hsaco})
    assert (case.verdict, told(case.findings), case.stages["amdgcn"]) == (verdict, findings, status)


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
    assert (case.verdict, case.stages["ptx"], told(case.findings)) == (Verdict.CHANGED, EQUIVALENT, ())
    assert not any("again" in asked for asked in compiler.asked)


@pytest.mark.parametrize("stages", [(), ("ttir",), ("npuasm",)])
@pytest.mark.parametrize(
    ("head", "verdict", "finding", "stage"),
    [
        ({"asm": ASM}, "unchanged", "machine-code-as-text:no-binary", None),
        ({"asm": "  op 2\n"}, "changed", "machine-code-as-text:no-binary", "asm"),
        ({"npuasm": ASM}, "changed", "not-compared:asm,npuasm", "asm"),
        ({}, "changed", "not-compared:asm,ttir", "asm"),
    ],
)
def test_the_last_texts_of_a_backend_without_binaries_decide(compiler, head, verdict, finding, stage, stages):
    compiler.target = NPU
    case = compiler.case({"ttir": TTIR, "asm": ASM}, {"ttir": TTIR, **head}, stages=stages)
    assert (case.verdict, case.origin and case.origin.stage) == (verdict, stage)
    assert finding in told(case.findings)


@pytest.mark.parametrize(
    ("changes", "finding", "stage", "status"),
    [
        ({"metadata": {**METADATA, "launch_in_waves": True}}, "launch_in_waves", "launch", CHANGED),
        ({"metadata": {**METADATA, "shared": 64}}, "shared", "launch", CHANGED),
        # of the IR, which differs: the stages show it
        ({"metadata": {**METADATA, "shared": 64}, "ttir": OTHER_TTIR}, "shared", "ttir", IDENTICAL),
        # nothing of the IR: the launch differs, too
        ({"metadata": {**METADATA, "launch_pdl": True}, "ttir": OTHER_TTIR}, "launch_pdl", "ttir", CHANGED),
        ({"handed": {"symbol": "no such kernel"}, "ttir": OTHER_TTIR}, "symbol", "ttir", CHANGED),
    ],
)
def test_what_the_launcher_receives_counts(compiler, changes, finding, stage, status):
    case = compiler.case(WHOLE, {**WHOLE, **changes})
    assert (case.verdict, told(case.findings)) == (Verdict.CHANGED, (f"launch-differs:{finding}",))
    assert (case.origin and case.origin.stage, case.stages["launch"]) == (stage, status)
    assert case.metadata.head == changes.get("metadata", METADATA)


def test_another_specialization_is_a_finding(compiler):
    other = replace(compiler.launch, signature={"x": "*fp16"}, constexprs={"BLOCK": "16"}, digest="2")
    case = compiler.case(WHOLE, WHOLE, pair={"head": other})
    assert told(case.findings) == ("specialization-differs:signature,constexprs",)


@pytest.mark.parametrize("same_toolchain", [True, False])
@pytest.mark.parametrize("use_cache", [True, False])
@pytest.mark.parametrize("digest", ["0" * 64, None])
def test_only_equal_launches_under_equal_toolchains_need_no_compiler(
    compiler, same_toolchain, use_cache, digest
):
    compiler.launch = replace(compiler.launch, digest=digest)
    sides = ("base", "base") if same_toolchain else ("base", "head")
    case = compiler.case(WHOLE, WHOLE, sides=sides, use_cache=use_cache)
    assert case.verdict is Verdict.UNCHANGED
    skips = same_toolchain and use_cache and digest is not None
    assert told(case.findings) == (("not-compiled:same-input",) if skips else ())
    assert (compiler.asked == []) == skips


def test_a_side_that_fails_breaks_or_fixes(compiler):
    case = compiler.case(WHOLE, FAILS)
    assert (case.verdict, case.error) == (Verdict.BROKEN, "head: it failed")
    assert set(case.artifacts.base) == {"launch", *WHOLE}
    assert compiler.case(FAILS, WHOLE).verdict is Verdict.FIXED
    assert compiler.case(FAILS, FAILS).verdict is Verdict.FAILING
    compiler.launch = replace(compiler.launch, expected=False)
    case = compiler.case(FAILS, FAILS, sides=("base", "base"))
    assert case.verdict is Verdict.FAILING, "what is expected to fail is not unchanged without compiling"


@pytest.mark.parametrize(
    ("launches", "compiles", "verdict", "error"),
    [
        ({"base": None}, True, "added", None),
        ({"base": None}, False, "failing", "head: it failed"),
        ({"base": FAILS_TO_LAUNCH}, True, "fixed", "base: no such option"),
        ({"base": FAILS_TO_LAUNCH}, False, "failing", "base: no such option; head: it failed"),
        ({"head": FAILS_TO_LAUNCH}, True, "broken", "head: no such option"),
        ({"head": FAILS_TO_LAUNCH}, False, "failing", "base: it failed; head: no such option"),
        # what no side can launch, or head has removed, is not compiled
        ({"head": None}, None, "removed", None),
        ({"base": FAILS_TO_LAUNCH, "head": None}, None, "removed", "base: no such option"),
        ({"base": None, "head": FAILS_TO_LAUNCH}, None, "failing", "head: no such option"),
    ],
)
def test_what_one_side_alone_launches_is_compiled_there(compiler, launches, compiles, verdict, error):
    made = compiler.compiled(**WHOLE) if compiles else FAILS
    compiler.outcomes = {"base": made, "head": made}
    case = compiler.case(pair=launches)
    assert (case.verdict, case.error) == (verdict, error)
    assert compiler.asked == ([] if compiles is None else [*({"base", "head"} - {*launches})])
    assert case.launches.base == (compiler.launch.key if "base" not in launches else None)


def test_a_damaged_artifact_is_compiled_again(compiler):
    whole = compiler.compiled(**WHOLE)
    gone = Artifact(stage="ptx", digest="0" * 64, size_bytes=1)
    compiler.outcomes["base again"] = whole
    damaged = replace(whole, artifacts={**whole.artifacts, "ptx": gone})
    assert compiler.case(damaged, {**WHOLE, "ptx": RENAMED_PTX}).verdict is Verdict.UNCHANGED
    assert sorted(compiler.asked) == ["base", "base", "head", "head"]
