"""Packs, and what torch.compile writes: with real packages, which takes a package index and a gigabyte."""

import json
from pathlib import Path

import pytest

from irdiff.resolve import packs
from tests.texts import TEXTS

ROOT = Path(__file__).parent.parent.parent
PROGRAM = TEXTS / "capture" / "compiled.py"
pytestmark = pytest.mark.wide


def test_a_pack_compiles_and_is_compared(irdiff, tmp_path):
    listed = tmp_path / "list.json"
    irdiff("corpus", "list", "--pack", "liger", "--target", "sm_90", "--json", str(listed))
    rows = json.loads(listed.read_text())
    assert len({row["kernel"] for row in rows}) >= 20
    assert all(row["source_path"].startswith("liger_kernel/") for row in rows)
    words = ("--pack", "liger", "--case", "liger/activations", "--target", "gfx950", "--no-attribute")
    found = irdiff("compare", "triton==3.8.0", "triton==3.9.0", *words, "--no-recheck").run
    verdicts = {case["verdict"] for case in found["cases"]}
    assert len(found["cases"]) >= 8 and verdicts <= {"unchanged", "ir-only", "changed"}
    assert "liger-kernel==0.8.5" in found["base"]["note"]
    assert found["base"]["corpus"] == found["head"]["corpus"]


def test_kernels_of_torch_compile_become_a_corpus(irdiff, newest, config, tmp_path):
    kernels = packs.install(packs.load(ROOT / "corpus", ["liger"]), newest, config)
    out, checked = tmp_path / "captured", tmp_path / "check.json"
    words = ("--no-gpu", "--python", newest.python, "--out", str(out), str(PROGRAM))
    said = irdiff("capture", *words, PYTHONPATH=f"{kernels.packages['liger'].site}:{ROOT}")
    assert "not written: scaled: torch.compile passes factor as fp64" in said.stdout
    names = [path.stem for path in out.rglob("triton_*.py")]
    assert any("gelu" in name for name in names) and any("backward" in name for name in names), names
    irdiff("corpus", "check", "--corpus", str(out), "--target", "sm_90", "--json", str(checked))
    assert all(row["compiled"] for row in json.loads(checked.read_text()))
