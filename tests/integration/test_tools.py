"""An LLVM and a ptxas as sides, against the releases whose texts they compile."""

import shutil
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from irdiff import backends
from irdiff.attribute.replayer import Replay, Replayer
from irdiff.compile.worker_compiler import WorkerCompiler
from irdiff.model import EVERY_LAUNCH, Compiled
from irdiff.resolve import corpus as corpora
from irdiff.resolve import targets, toolchains
from irdiff.resolve.sides import Side
from irdiff.store import Store
from irdiff.worker_client.worker_requests import Requests
from irdiff.worker_client.workers import Workers

ROOT = Path(__file__).parents[2]
CASE = "elementwise/vector_add:fp32-16m"
LLVM = next(
    (path for path in sorted(Path("/usr/lib").glob("llvm-2[2-9]")) if (path / "bin/llc").exists()), None
)
needs_llvm = pytest.mark.skipif(LLVM is None, reason="no llc of LLVM 22 or later: apt-get install llvm-22")


def ptxas_of(toolchain, name):
    return next(path for path in toolchain.programs if path.endswith(f"/{name}"))


@pytest.mark.parametrize("target", ["sm_90", "gfx942"])
@pytest.mark.parametrize("release", [pytest.param("3.5.1", marks=pytest.mark.wide), "3.8.0", "3.9.0"])
def test_calls_are_derived_as_the_release_makes_them(config, release, target):
    toolchain = toolchains.resolve(f"triton=={release}", config)
    chosen = targets.select([target], [ROOT / "targets"])[0]
    corpus = corpora.load(ROOT / "corpus")
    side, store = Side(toolchain=toolchain, corpus=corpus, note=""), Store(config.store)
    with closing(Workers(config)) as workers:
        compiler = WorkerCompiler(
            Requests(config, workers), store, replace(EVERY_LAUNCH, cases=(CASE,)), reuse=False
        )
        catalog = compiler.catalog(side, "elementwise/vector_add", chosen)
        launch = next(row for row in catalog.launches if row.id == CASE)
        made = compiler.compile(side, launch, chosen)
        assert isinstance(made, Compiled)
        stage = "ptx" if chosen.backend == "cuda" else "amdgcn"
        digest = made.artifacts["llir"].digest
        text = {"stage": stage, "input_stage": "llir", "input_digest": digest}
        replay = Replay(side=side, launch=launch, target=chosen, metadata=made.metadata, **text)
        settings = Replayer(compiler).run(replay).settings
    ptx = (store.get(made.artifacts["ptx"].digest) or b"").decode() if stage == "ptx" else None
    generation = backends.of(chosen.backend).CODE_GENERATION
    call = generation.llvm_call(launch, chosen, release, ptx)
    words = settings.get("translate_to_asm") or settings["compile_amdgpu"]
    assert f"2={call.processor}" in words
    assert f"3={f'+ptx{call.newest_isa}' if call.newest_isa else ','.join(call.features)}" in words
    assert ("5=True" in words or "enable_fp_fusion=True" in words) is call.fuses
    if ptx is not None:
        assert f"1={call.triple}" in words
        given = [word for word in words if word.startswith("nvptx-")]
        # up to 3.8 short pointers are set by a function of its own
        assert set(given) | {"nvptx-short-ptr"} == set(call.flags)
        assert made.assembler.flags == generation.ASSEMBLER.flags(launch, release, ptx)


def test_the_ptxas_of_the_release_changes_nothing(irdiff, newest):
    tool = f"ptxas:{ptxas_of(newest, 'ptxas-blackwell')}"
    done = irdiff("compare", "triton==3.9.0", tool, "--case", CASE, "--target", "sm_90", "--target", "gfx942")
    assert done.code == 0, done.stderr
    assert done.verdicts() == {"unchanged": 2}
    assert any("PTX and all above it are the same inputs" in note for note in done.run["notes"])
    assert done.case(f"{CASE}@sm_90")["stages"]["ptx"] == "identical"


def test_two_assemblers_change_nothing_for_amd_and_are_told_apart(irdiff, newest, previous):
    ours, theirs = (f"ptxas:{ptxas_of(side, 'ptxas-blackwell')}" for side in (previous, newest))
    name = "reduction/reduce:all-fp32-16m"
    words = ("--case", name, "--target", "sm_100", "--target", "gfx942")
    done = irdiff("compare", ours, theirs, "--from", "triton==3.8.0", *words)
    assert done.code == 0, done.stderr
    assert done.case(f"{name}@gfx942")["verdict"] == "unchanged"
    case = done.case(f"{name}@sm_100")
    assert case["stages"]["ptx"] == "identical"
    assert (case["verdict"] == "changed") is (case["stages"]["sass"] == "changed")
    if case["verdict"] == "changed":  # otherwise no figure moved
        assert "figures that moved" in done.stdout


@needs_llvm
def test_an_llvm_compiles_what_a_release_or_a_run_has(irdiff, tmp_path, newest):
    words, run = ("--case", CASE, "--target", "sm_90", "--target", "gfx942"), str(tmp_path / "run")
    first = irdiff("compare", "triton==3.9.0", f"llvm:{LLVM}", *words, "--out", run)
    assert first.code == 0, first.stderr
    stages = {case["target"]: case["stages"] for case in first.run["cases"]}
    assert stages["sm_90"]["llir"] == stages["gfx942"]["llir"] == "identical"
    assert first.case(f"{CASE}@gfx942")["facts"]["head"]["vgprs"] > 0
    words = (*words, "--from", run, "--ptxas", ptxas_of(newest, "ptxas-blackwell"))
    again = irdiff("compare", f"llvm:{LLVM}", f"llvm:{LLVM}/bin/llc", *words)
    assert again.code == 0, again.stderr
    assert again.case(f"{CASE}@gfx942")["verdict"] == "unchanged"


def test_what_is_no_tool_is_said(irdiff, tmp_path):
    shutil.copy("/bin/true", tmp_path / "llc")
    assert "there is no" in irdiff("compare", "triton==3.9.0", "llvm:/nowhere").stderr
    assert "prints no version of LLVM" in irdiff("compare", "triton==3.9.0", f"llvm:{tmp_path}/llc").stderr
    both = irdiff("compare", "ptxas:/bin/true", "ptxas:/bin/true")
    assert "whose texts they compile" in both.stderr
