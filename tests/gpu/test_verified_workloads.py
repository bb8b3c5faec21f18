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
CORPUS = ROOT / "tests/data/texts/gpu/verified"


def verified(*more):
    words = (
        f"{ROOT}/irdiff/worker/__main__.py verify --corpus {CORPUS} --targets {ROOT}/targets --target sm_90"
    )
    done = subprocess.run(
        [sys.executable, *words.split(), *more], stdout=subprocess.PIPE, text=True, timeout=500
    )
    rows = map(json.loads, done.stdout.splitlines())
    return {row["id"].split(":")[1].split("@")[0]: row for row in rows}


@pytest.fixture(autouse=True)
def gpu():
    torch = pytest.importorskip("torch", reason="no torch here")
    if not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0):
        pytest.skip("no sm_90 GPU here")


def test_each_launch_has_its_answer_also_after_a_fault():
    rows = verified()
    assert len(rows) == 8
    assert {name for name, row in rows.items() if not row["ok"]} == {"wrong", "fault", "wrong-gradient"}
    assert "2.5e-01" in rows["wrong"]["why"]
    assert "illegal memory access" in rows["fault"]["why"]
    assert rows["alone"]["why"] == "no reference: it runs"
    assert rows["right"]["median_us"] > 0 and 0 < rows["right"]["peak_percent"] <= 100


def test_parts_are_all_launches_once():
    parts = [set(verified("--part", f"{part}/3")) for part in (1, 2, 3)]
    assert sum(map(len, parts)) == len(set().union(*parts)) == 8
