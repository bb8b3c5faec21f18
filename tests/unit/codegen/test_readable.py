"""Which text each tool of a comparison is given."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from irdiff.codegen import readable
from irdiff.codegen.readable import Abilities, ReadableTexts
from irdiff.codegen.running import Runner
from irdiff.codegen.spellings import rewritten
from irdiff.config import Limits
from irdiff.resolve.tools.tool import Tool, ToolKind
from irdiff.store import Store

TEXT = "  %1 = icmp samesign ult i32 %0, 4\n  call void @f(ptr captures(none) %2)\n"
KNOWN = {
    "old": Abilities(unreadable=("captures(none)", "icmp samesign"), newest_ptx=84, flags=()),
    "new": Abilities(unreadable=(), newest_ptx=95, flags=readable.FLAGS),
}


def tool(name: str, kind: ToolKind = ToolKind.LLVM) -> Tool:
    return Tool(
        kind=kind,
        spec=f"llvm:/{name}",
        version=f"LLVM {name}",
        path=Path(f"/{name}"),
        digest=name,
        programs={},
        backends=frozenset({"cuda", "hip"}),
        notes=(),
    )


@pytest.fixture(autouse=True)
def asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readable, "of_tool", lambda tool, runner, store: KNOWN[tool.digest])


def texts(tmp_path: Path, *tools: Tool, alone: bool) -> ReadableTexts:
    limits = Limits(timeout_s=1, memory_bytes=1)
    runner = Runner(limits=limits, cores=threading.BoundedSemaphore(1))
    return ReadableTexts(tools, runner, Store(tmp_path), alone=alone)


def test_a_promise_is_left_out_for_both_and_a_spelling_for_the_one_that_needs_it(tmp_path: Path) -> None:
    old, new = tool("old"), tool("new")
    found = texts(tmp_path, old, new, alone=True)
    without, names = rewritten(TEXT, found.spellings(old))
    assert without == TEXT.replace(" samesign", "").replace("captures(none)", "nocapture")
    assert rewritten(TEXT, found.spellings(new))[0] == TEXT.replace(" samesign", "")
    found.note(names, "digest")
    told = " ".join(found.notes())
    assert "LLVM old cannot read icmp samesign: left out on both sides, in 1 texts" in told
    assert "LLVM old cannot read captures(none): spelled differently, with the same meaning" in told
    assert "LLVM old has no switch nvptx-short-ptr" in told


def test_against_the_release_no_promise_is_left_out(tmp_path: Path) -> None:
    old = tool("old")
    assert texts(tmp_path, old, alone=False).spellings(old) == ("captures(none)",)


def test_ptx_is_given_under_an_isa_that_the_assembler_knows(tmp_path: Path) -> None:
    old, new = tool("old", ToolKind.PTXAS), tool("new", ToolKind.PTXAS)
    found = texts(tmp_path, old, new, alone=False)
    ptx = b"//\n.version 9.4\n.target sm_90a\n"
    assert found.ptx(ptx, old) == b"//\n.version 8.4\n.target sm_90a\n"
    assert found.ptx(ptx, new) == ptx
    assert found.ptx(b"no header", old) == b"no header"
    assert any("knows no ISA 9.4" in note for note in found.notes())
