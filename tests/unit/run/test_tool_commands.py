"""The commands by which a developer makes one side of a tool alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from irdiff.model import Artifact, Sides, Verdict
from irdiff.run import explanation, run_folder
from irdiff.store import sha256
from tests.unit.conftest import Build

PTX = b"//\n.version 8.7\n.target sm_90a\n"


def test_each_side_of_a_tool_has_its_command(
    build: type[Build], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    artifact = Artifact(stage="ptx", digest=sha256(PTX), size_bytes=len(PTX))
    metadata = {"triton_version": "3.9.0"}
    case = replace(
        build.case("matmul/tma:fp16@sm_90", Verdict.CHANGED),
        artifacts=Sides(base={"ptx": artifact}, head={"ptx": artifact}),
        metadata=Sides(base=metadata, head=metadata),
    )
    run = build.run(case)
    monkeypatch.setattr(run_folder, "artifact", lambda folder, digest: PTX)
    assert explanation.tool_commands(run, tmp_path, case) == []
    tools = replace(
        run,
        base=replace(run.base, spec="llvm:/usr/lib/llvm-22"),
        head=replace(run.head, spec="ptxas:/cuda/bin/ptxas"),
    )
    base, head = explanation.tool_commands(tools, tmp_path, case)
    assert base == (
        "base: /usr/lib/llvm-22/bin/llc -O3 -mtriple=nvptx64-nvidia-cuda -mcpu=sm_90a -mattr=+ptx87 "
        "--relocation-model=pic --trap-unreachable --fp-contract=fast --nvptx-short-ptr --nvptx-mad-wide-opt "
        "base.llir -o base.ptx"
    )
    assert head == (
        "head: /cuda/bin/ptxas -lineinfo -v --regAllocOptLevel=2 --gpu-name=sm_90a head.ptx -o head.cubin"
    )
