"""Target files, and what is reported of a wrong one."""

from __future__ import annotations

from pathlib import Path

import pytest

from irdiff.errors import UsageError
from irdiff.resolve import targets

SHIPPED = Path(__file__).parents[3] / "targets"
NEEDED = 'backend = "cuda"\narch = 90\nwarp_size = 32\n'


def load(tmp_path: Path, text: str) -> targets.Target:
    (tmp_path / "xpu.toml").write_text(text)
    return targets.load(tmp_path / "xpu.toml")


def test_shipped_targets() -> None:
    found = targets.load_all([SHIPPED])
    assert set(targets.DEFAULT) <= set(found)
    for target in found.values():
        assert set(target.facts) == set(target.sources), f"{target.name}: every figure has its source"


def test_a_file_adds_a_target(tmp_path: Path) -> None:
    load(tmp_path, 'backend = "xpu"\narch = "pvc"\nwarp_size = 16\n')
    assert targets.select(["xpu"], [SHIPPED, tmp_path])[0].backend == "xpu"
    with pytest.raises(UsageError, match="no target sm_1"):
        targets.select(["sm_1"], [SHIPPED])
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        targets.load(tmp_path / "zpu.toml")


@pytest.mark.parametrize(
    ("old", "new", "mistake"),
    [
        ('backend = "cuda"', "", "backend: is missing"),
        ("arch = 90", "", "arch: is missing"),
        ("warp_size", "warpsize", "warpsize: there is no such key; did you mean 'warp_size'?"),
        ("warp_size", "warpsize", "warp_size: is missing"),
        ("warp_size = 32", "warp_size = 32\n[fact]", "fact: there is no such key; did you mean 'facts'?"),
        *(("warp_size = 32", f"warp_size = {value}", "warp_size: ") for value in ('"32"', "true", "0")),
        *(("arch = 90", f"arch = {value}", "arch") for value in ("9.0", '""', "true", "0")),
        *(('"cuda"', value, "backend: ") for value in ('""', "[1]")),
        *(("= 32", f"= 32\n[facts]\nn = {value}", "facts.n") for value in ("[1]", "nan", "true")),
        ("= 32", "= 32\n[sources]\nregisters = 1", "sources.registers: "),
        ("= 32", "= 32\ntitle = 1", "title: "),
        ("arch = 90", "arch 90", "is not TOML"),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, old: str, new: str, mistake: str) -> None:
    assert old in NEEDED
    with pytest.raises(UsageError, match=r"xpu\.toml is not ") as caught:
        load(tmp_path, NEEDED.replace(old, new))
    assert mistake in str(caught.value)
