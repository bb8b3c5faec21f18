"""What is remembered of comparisons: not the answers that another attempt may better."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from irdiff.comparison import CaseComparer
from irdiff.model import Artifact
from irdiff.normalize import Printed
from irdiff.store import Store

_OLD = "define i32 @f(i32 %x) {\n  %y = call i32 @llvm.ctlz.i32(i32 %x)\n  ret i32 %y\n}\n"
_NEW = _OLD.replace("(i32 %x)\n  ret", "(i32 %x, i1 false)\n  ret")


@pytest.mark.parametrize(
    ("why_not", "asked"),
    [("died", 2), ("timeout", 2), ("unavailable", 2), ("unreadable", 1), ("too-long", 1)],
)
def test_a_reader_that_failed_is_asked_again(tmp_path: Path, why_not: str, asked: int) -> None:
    store = Store(tmp_path)
    artifacts = [
        Artifact(stage="llir", digest=store.put(text.encode()), size_bytes=len(text)) for text in (_OLD, _NEW)
    ]
    seen: list[str] = []

    def reprint(text: str) -> Printed:
        seen.append(text)
        return Printed(text=None, form="llvm-0", opaque=(), why_not=why_not)

    compiler: Any = SimpleNamespace(
        requests=SimpleNamespace(workers=SimpleNamespace(llvm=SimpleNamespace(reprint=reprint)))
    )
    none: Any = None
    comparer = CaseComparer(compiler, store, none, none, none)
    for _ in range(2):
        found = comparer.equivalent("llir", *artifacts)
        assert not found.equal
        assert f"lexical-llir:{why_not}" in found.findings
    assert len(seen) == asked
