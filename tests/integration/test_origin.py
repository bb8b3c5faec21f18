"""Planted causes: a release whose Python is edited in one place, for both vendors, is told exactly."""

import pytest

from tests.programs import edited_toolchain
from tests.unit.golden import golden

CASE = "matmul/pointer:fp16-stages2-4warps"
PLANTED = {row["name"]: row for row in golden("planted-causes")["planted"]}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.wide)
        if name in ("a pass added", "a pass moved", "another option", "another LLVM flag")
        else name
        for name in PLANTED
    ],
)
def test_planted_cause_is_named(irdiff, newest, tmp_path, name):
    edits, expected = PLANTED[name]["edits"], PLANTED[name]["expected"]
    planted = plant(newest, tmp_path / "planted", edits)
    targets = [word for target in expected for word in ("--target", target)]
    words = ("--case", CASE, *targets, "--no-recheck", "--out", str(tmp_path / "run"))
    result = irdiff("compare", "triton==3.9.0", planted, *words)
    assert result.code == 0, result.stderr
    for target, (stage, pass_name, note, charged) in expected.items():
        origin = result.case(f"{CASE}@{target}")["origin"]
        assert (origin["stage"], origin["pass_name"] or "") == (stage, pass_name), origin
        assert note in origin["note"], origin
        assert origin["charged"][0] == charged, origin
        assert origin["charged"] == [charged] or "moved" in name
        if origin["stage"] == "llir":  # the pass of LLVM's optimizer is for who asks
            story = irdiff("explain", str(tmp_path / "run"), f"{CASE}@{target}")
            assert "origin:  llir, pass InstCombinePass" in story.stdout, story.stderr


def plant(toolchain, folder, edits):
    """The release with these edits, each once in its backend's compiler."""
    side = edited_toolchain.make(toolchain, folder, {})
    for backend, old, new in edits:
        (path,) = folder.glob(f"lib/python*/site-packages/triton/backends/{backend}/compiler.py")
        text = path.read_text()
        assert old in text, f"the release has no {old!r}"
        path.unlink()  # a link to the release's own
        path.write_text(text.replace(old, new, 1))
    return side


def test_a_known_cause_its_story_and_its_lit_test(irdiff, tmp_path):
    """3.9.0 puts the barriers of a matmul on Hopper elsewhere; the test written from that holds there alone.

    Its TTGIR has a fence more, which the lowering of 3.8.0 puts there too: that edit has no effect.
    """
    case = "matmul/pointer:fp16-4096@sm_90"
    out = str(tmp_path / "run")
    words = ("--case", case, "--target", "sm_90", "--no-recheck", "--out", out)
    result = irdiff("compare", "triton==3.8.0", "triton==3.9.0", *words)
    assert result.case(case)["origin"]["pass_name"] == "TritonNvidiaGPUMembar"
    assert result.case(case)["origin"]["note"].startswith("no difference before the LLVM IR has an effect")

    story = irdiff("explain", out, case)
    assert story.code == 0, story.stderr
    assert "triton-nvidia-gpu-membar" in story.stdout
    assert "a = tl.load(a_ptrs" in story.stdout, "the kernel's line behind the edit"

    lit = tmp_path / "barrier.mlir"
    written = irdiff("explain", out, case, "--lit", str(lit))
    assert "holds on head and fails on base" in written.stderr
    text = lit.read_text()
    assert "// RUN: triton-opt %s --pass-pipeline='builtin.module(triton-nvidia-gpu-membar" in text
    assert "// CHECK: ttg.barrier local" in text
