"""`corpus verify` over workloads of torch tensors: right, wrong, without a reference, and one that faults.

`pytest --noconftest tests/gpu/test_verified_workloads.py -s` on a host with an H100 or H200, torch and Triton.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.gpu

ROOT = Path(__file__).parents[2]
WORKLOAD = """
import torch
import triton
import triton.language as tl
from irdiff_corpus import checked, launch, trained

@triton.jit
def scale(x, y, n, FACTOR: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, at < n) * FACTOR, at < n)

class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return scaled(x, factor)

    @staticmethod
    def backward(ctx, flow):
        return scaled(flow.contiguous(), ctx.factor), None

def scaled(x, factor):
    y = torch.empty_like(x)
    scale[(x.numel() // 1024,)](x, y, x.numel(), factor, 1024)
    return y

def twice(factor, dtype=torch.float32):
    checked(lambda x: scaled(x, factor), lambda x: x * 2.0, torch.randn(1 << 20, dtype=dtype))

def in_place():
    def run(x):
        scale[(1024,)](x, x, x.numel(), 2.0, 1024)
        return x

    checked(run, lambda x: x * 2.0, torch.randn(1 << 20))

def with_gradient(factor):
    trained(lambda x: Scale.apply(x, factor), lambda x: x * 2.0, torch.randn(4096, 1024))

def alone():
    scaled(torch.ones(1024), 2.0)

def fault():
    scale[(1 << 20,)](torch.ones(1024), torch.ones(1024), 1 << 40, 2.0, 1024)
    torch.cuda.synchronize()

LAUNCHES = {
    "right": launch(twice, 2.0),
    "wrong": launch(twice, 2.5),
    "fault": launch(fault),
    "half": launch(twice, 2.0, torch.bfloat16),
    "in-place": launch(in_place),
    "gradient": launch(with_gradient, 2.0),
    "wrong-gradient": launch(with_gradient, 2.01),
    "alone": launch(alone),
}
"""


def verified(folder, *words):
    command = [sys.executable, ROOT / "irdiff/worker/__main__.py", "verify", "--corpus", folder]
    command += ["--targets", ROOT / "targets", "--target", "sm_90", *words]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=500)
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {row["id"].split(":")[1].split("@")[0]: row for row in rows}, done


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    torch = pytest.importorskip("torch", reason="no torch here")
    if not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0):
        pytest.skip("no sm_90 GPU here")
    folder = tmp_path_factory.mktemp("corpus")
    (folder / "scaling").mkdir()
    (folder / "scaling/scale.py").write_text(WORKLOAD)
    return folder


def test_each_launch_has_its_answer_also_after_a_fault(corpus):
    rows, done = verified(corpus)
    assert {name: row["ok"] for name, row in rows.items()} == {
        "right": True,
        "wrong": False,
        "fault": False,
        "half": True,
        "in-place": True,
        "gradient": True,
        "wrong-gradient": False,
        "alone": True,
    }, done.stderr
    assert "2.5e-01" in rows["wrong"]["why"]
    assert "illegal memory access" in rows["fault"]["why"]
    assert rows["alone"]["why"] == "no reference: it runs"
    assert rows["right"]["median_us"] > 0 and 0 < rows["right"]["peak_percent"] <= 100


def test_parts_are_all_launches_once(corpus):
    parts = [set(verified(corpus, "--part", f"{part}/3")[0]) for part in (1, 2, 3)]
    assert sum(map(len, parts)) == len(set().union(*parts)) == 8
