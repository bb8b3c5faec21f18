"""Recording on a GPU: the program computes what it computes without us, and its launches are recorded.

Runs the recorder with this interpreter: `pytest --noconftest tests/gpu/test_capture.py` will do.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PROGRAM = HERE.parent / "data/texts/gpu/every_launch.py"
WORKER = HERE.parent.parent / "irdiff" / "worker" / "__main__.py"
pytestmark = pytest.mark.gpu
torch = pytest.importorskip("torch", reason="no torch here")
if not torch.cuda.is_available():
    pytest.skip("no GPU here", allow_module_level=True)


def run(folder, *words):
    """(exit code, RESULT lines, everything printed)"""
    env = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor")}
    command, pipes = (
        [sys.executable, *map(str, words)],
        {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT},
    )
    done = subprocess.run(command, text=True, env=env, timeout=300, check=False, **pipes)
    results = [line for line in done.stdout.splitlines() if line.startswith("RESULT")]
    return done.returncode, results, done.stdout


def record(folder, name, *words):
    out = folder / name
    done = run(folder, WORKER, "record", "--out", out, "--json", out.with_suffix(".json"), *words)
    return *done, json.loads(out.with_suffix(".json").read_text())


def made(recorded):
    """What the frontend made of each launch, by kernel, without what an autotuner chooses by the clock."""
    return {row["kernel"]: (row["signature"], row["attributes"]) for row in recorded["launches"]}


def test_the_program_computes_the_same_and_is_recorded(tmp_path):
    code, results, said = run(tmp_path / "plain", PROGRAM)
    assert (code, len(results)) == (0, 6), said
    seen = []
    # kernels that other processes compile, then those that Inductor's cache brings
    for name in ("cold", "warm"):
        code, recorded_results, said, recorded = record(tmp_path, name, PROGRAM)
        assert (code, recorded_results) == (0, results), said
        # the compiled graph passes saxpy's scalar as fp64, a launch by hand as fp32
        assert [kernel for kernel, _ in recorded["not_written"]] == ["saxpy"] and recorded["ended"] is None
        kernels = set(made(recorded))
        assert {"saxpy", "row_softmax", "count_in", "gather"} <= kernels
        assert sum(kernel.startswith("triton_") for kernel in kernels) >= 5
        seen.append(made(recorded))
    assert seen[0] == seen[1]


def test_the_exit_code_is_the_programs(tmp_path):
    code, _, said, recorded = record(tmp_path, "quick", PROGRAM, "quick")
    assert code == 3, said
    assert "the program ended with exit code 3" in said and "without a GPU" not in said
    assert len(recorded["launches"]) == 4


def test_plain_kernels_are_those_recorded_without_a_gpu(tmp_path):
    """Every config is recorded there, and here the chosen one, with the same digest."""
    *_, here = record(tmp_path, "here", PROGRAM, "unchecked", "quick")
    *_, there = record(tmp_path, "there", "--no-gpu", PROGRAM, "unchecked", "quick")
    digests = [{row["digest"] for row in recorded["launches"]} for recorded in (here, there)]
    assert len(digests[0]) == 2 and len(digests[1]) == 4
    assert digests[0] < digests[1]
