"""What lies above the stages of a target compiles nothing whose IR is the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from irdiff.model import Toolchain
from tests import edited_toolchain

pytestmark = pytest.mark.integration
ROOT = Path(__file__).parent.parent.parent
REUSED = "not-compiled:same-input-and-stages"


@pytest.mark.parametrize(
    ("edit", "compiled"),
    [(edited_toolchain.FRONTEND_EDIT, []), (edited_toolchain.AMD_EDIT, ["gfx942"])],
    ids=["frontend", "AMD's backend"],
)
def test_only_what_can_differ_is_compiled(
    irdiff, newest: Toolchain, tmp_path: Path, edit: dict[str, str], compiled: list[str]
) -> None:
    head = edited_toolchain.make(newest, tmp_path / "edited", edit)
    words = ("--case", "elementwise/vector_add", "--target", "sm_90", "--target", "gfx942")
    first = irdiff("compare", newest.spec, newest.spec, "--no-shortcut", *words)
    assert first.code == 0, first.stderr
    found = irdiff("compare", newest.spec, head, *words)
    assert found.code == 0, found.stderr
    assert found.run["base"]["digest"] != found.run["head"]["digest"]
    assert set(found.verdicts()) == {"unchanged"}
    reached = {case["target"] for case in found.run["cases"] if REUSED not in case["findings"]}
    assert sorted(reached) == compiled


@pytest.mark.parametrize("stage", ["launcher_src", "launch.json"])
def test_what_a_fork_makes_after_the_binary_is_compared_where_the_ptx_is_the_same(
    irdiff, newest: Toolchain, tmp_path: Path, stage: str
) -> None:
    sides = [
        edited_toolchain.make(
            newest, tmp_path / name, {"triton/compiler/compiler.py": writes_a_launcher(name, stage)}
        )
        for name in ("one", "other")
    ]
    words = ("--case", "elementwise/vector_add", "--target", "sm_90", "--target", "gfx942")
    for more in ((), ("--no-shortcut",)):
        found = irdiff("compare", *sides, *words, *more)
        assert found.code == 0, found.stderr
        assert set(found.verdicts()) == {"changed"}, "no machine code absorbs what launches it"
        assert {case["stages"][stage] for case in found.run["cases"]} == {"changed"}


def writes_a_launcher(text: str, stage: str = "launcher_src") -> str:
    return f"""

_compile = compile


def compile(*args, **kwargs):
    made = _compile(*args, **kwargs)
    get_cache_manager("0" * 64).put("void {text}();", "kernel.{stage}", binary=False)
    return made
"""
