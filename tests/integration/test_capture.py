"""A user's program becomes a corpus: `irdiff capture`, then `list` and `compare` over what it wrote."""

import json

import pytest

from tests.texts import TEXTS

PROGRAMS = TEXTS / "capture"
PROGRAM = PROGRAMS / "train.py"


def test_a_program_becomes_a_corpus(irdiff, tmp_path):
    out, seen, found = (tmp_path / name for name in ("captured", "seen.json", "list.json"))
    words = ("--out", out, "--json", seen, "--toolchain", "triton==3.9.0", "--no-gpu", PROGRAM, "1024")
    captured = irdiff("capture", *map(str, words))
    assert captured.code == 1 and "SystemExit: its results were not computed" in captured.stdout
    launches = json.loads(seen.read_text())["launches"]

    names = sorted(path.relative_to(out).as_posix() for path in out.rglob("*.*"))
    assert names == ["README.md", "train/matmul_kernel.py", "train/softmax_kernel.py"]
    softmax = (out / "train" / "softmax_kernel.py").read_text()
    assert "LOG2E = tl.constexpr(1.4426950408889634)\n" in softmax
    assert "EPSILON = tl.constexpr(1e-06)\n" in softmax
    matmul = (out / "train" / "matmul_kernel.py").read_text()
    assert "\n@triton.jit\ndef leaky_relu(x):\n" in matmul
    assert 'tensor((256, 512), "fp16"), tensor((512, 128), "fp16")' in matmul
    assert "BLOCK_M=128, BLOCK_N=64" in matmul and "act=leaky_relu" in matmul
    # two shapes of softmax; two configs of the matmul, each with and without its epilogue
    assert len(launches) == 6

    # a written launch is the recorded one
    chosen = ("--corpus", str(out), "--target", "sm_90")
    assert irdiff("corpus", "list", *chosen, "--json", str(found)).code == 0
    rows = {row["id"]: row for row in json.loads(found.read_text())}
    assert sorted(rows) == sorted(launch["id"] for launch in launches)
    for launch in launches:
        for part in ("kernel", "signature", "constexprs", "attributes", "grid"):
            # where a device function was defined is not part of what it does
            said = json.loads(json.dumps(launch[part]).replace("jit:shapes.", "jit:matmul_kernel."))
            assert rows[launch["id"]][part] == said, (launch["id"], part)

    only = ("--case", "softmax_kernel", "--no-recheck", "--no-attribute")
    compared = irdiff("compare", "triton==3.8.0", "triton==3.9.0", *chosen, *only)
    verdicts = {case["id"]: case["verdict"] for case in compared.run["cases"]}
    assert set(verdicts) == {f"{name}@sm_90" for name in rows if "softmax" in name}
    assert set(verdicts.values()) <= {"unchanged", "ir-only", "changed"}

    (out / "train" / "softmax_kernel.py").write_text("import nothing_here\n")
    lost = irdiff("corpus", "check", *chosen, "--case", "train/softmax_kernel:wide*")
    assert lost.code == 1 and "No module named 'nothing_here'" in lost.stdout


def test_a_package_that_a_program_lacks_is_named_with_what_to_type(irdiff, tmp_path):
    script = tmp_path / "needy.py"
    script.write_text("import triton\nimport einops.layers\n")
    words = ("--out", str(tmp_path / "out"), "--toolchain", "triton==3.9.0", "--no-gpu", str(script))
    said = irdiff("capture", *words).stdout
    assert "the program ended early: ModuleNotFoundError: No module named 'einops'" in said
    assert "next: record again with --with einops\n" in said
    assert 'needy.py", line 2' in said and "runpy" not in said, "the program's own frames alone"
    assert not (tmp_path / "out").exists()


@pytest.fixture
def on_gpu(irdiff, newest, tmp_path):
    """(what was said, what was recorded in `tmp_path/out`) of a program that runs with a made-up GPU."""

    def record(*words, code=0):
        interpreter, seen = tmp_path / "python", tmp_path / "seen.json"
        program = PROGRAMS / "as_if_on_gpu.py"
        interpreter.write_text(f'#!/bin/sh\nshift 3\nexec "{newest.python}" "{program}" "$@"\n')
        interpreter.chmod(0o755)
        options = ("--out", tmp_path / "out", "--json", seen, "--python", interpreter)
        done = irdiff("capture", *map(str, options), str(PROGRAMS / words[0]), *words[1:])
        assert done.code == code, done.stderr
        return done.stdout, json.loads(seen.read_text())

    return record


def test_on_a_gpu_the_program_runs_as_without_us(on_gpu, tmp_path):
    """The program itself checks what was launched, and how often its functions were called."""
    said, recorded = on_gpu("launches.py", "3", code=3)
    assert "the program ended with exit code 3: SystemExit: 3" in said
    assert "without a GPU" not in said and "no GPU" not in said
    # of the autotuned kernel the chosen config, once; nothing that was tried on the way
    launches = {launch["kernel"]: launch for launch in recorded["launches"]}
    assert len(recorded["launches"]) == len(launches) == 2
    assert launches["scale"]["constexprs"]["BLOCK"] == "512"
    assert launches["scale"]["grid"] == [8, 1, 1]
    # what cannot be described does not end the program, and is said
    assert recorded["not_written"] == [["copy", "ZeroDivisionError: integer division or modulo by zero"]]
    assert "ZeroDivisionError" in (tmp_path / "out" / "README.md").read_text()
    assert (tmp_path / "out" / "launches" / "scale.py").exists()


def test_on_a_gpu_kernels_of_inductor_are_recorded_where_they_are_launched(on_gpu, tmp_path):
    _, recorded = on_gpu("inductor_launches.py")
    (launch,) = recorded["launches"]
    assert (launch["kernel"], launch["grid"]) == ("triton_poi_fused_add_0", [4, 1, 1])
    assert launch["constexprs"] == {"XBLOCK": "256"}
    text = (tmp_path / "out" / "inductor_launches" / "triton_poi_fused_add_0.py").read_text()
    assert "1000, XBLOCK=256, num_warps=8" in text and "torch" not in text


def test_copies_of_one_kernel_share_a_file(on_gpu):
    _, recorded = on_gpu("copies.py")
    names = [launch["id"] for launch in recorded["launches"]]
    assert names == ["copies/double:fp32-1x4096#1", "copies/double:fp32-1x4096#2"]
    assert recorded["not_written"] == []
