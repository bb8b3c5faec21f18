"""Target files: what they say, and what is said of a wrong one."""

from __future__ import annotations

from pathlib import Path

import pytest

from irdiff.errors import UsageError
from irdiff.resolve import targets

ROOT = Path(__file__).parents[3]
NEEDED = 'backend = "cuda"\narch = 90\nwarp_size = 32\n'


def load(tmp_path: Path, text: str) -> targets.Target:
    (tmp_path / "xpu.toml").write_text(text)
    return targets.load(tmp_path / "xpu.toml")


def test_shipped_targets() -> None:
    found = targets.load_all([ROOT / "targets"])
    assert set(targets.DEFAULT) <= set(found)
    for target in found.values():
        assert set(target.facts) == set(target.sources), f"{target.name}: every figure has its source"


def test_a_file_adds_a_target(tmp_path: Path) -> None:
    load(tmp_path, 'backend = "xpu"\narch = "pvc"\nwarp_size = 16\n')
    assert targets.select(["xpu"], [ROOT / "targets", tmp_path])[0].backend == "xpu"


def test_a_file_says_no_more_than_it_must(tmp_path: Path) -> None:
    target = load(tmp_path, NEEDED)
    assert (target.name, target.title, target.arch) == ("xpu", "xpu", 90)
    assert (target.facts, target.sources) == ({}, {})


def test_facts_keep_their_kind(tmp_path: Path) -> None:
    facts = load(tmp_path, NEEDED + '[facts]\na = 1\nb = 1.0\nc = "one"\n[sources]\na = "book"\n').facts
    assert facts == {"a": 1, "b": 1.0, "c": "one"}
    assert [type(fact) for fact in facts.values()] == [int, float, str]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('backend = "cuda"', "", "backend: is missing"),
        ("arch = 90", "", "arch: is missing"),
        ("warp_size", "warpsize", "warpsize: there is no such key; did you mean 'warp_size'?"),
        ("warp_size", "warpsize", "warp_size: is missing"),
        ("warp_size = 32", "warp_size = 32\n[fact]", "fact: there is no such key; did you mean 'facts'?"),
        ("warp_size = 32", 'warp_size = "32"', "warp_size: "),
        ("warp_size = 32", "warp_size = true", "warp_size: "),
        ("warp_size = 32", "warp_size = 0", "warp_size: "),
        ("arch = 90", "arch = 9.0", "arch"),
        ("arch = 90", 'arch = ""', "arch"),
        ('"cuda"', '""', "backend: "),
        ('"cuda"', "[1]", "backend: "),
        ("warp_size = 32", "warp_size = 32\n[facts]\nregisters = [1]", "facts.registers"),
        ("warp_size = 32", "warp_size = 32\n[facts]\nregisters = nan", "facts.registers"),
        ("warp_size = 32", "warp_size = 32\n[sources]\nregisters = 1", "sources.registers: "),
        ("warp_size = 32", "warp_size = 32\ntitle = 1", "title: "),
        ("arch = 90", "arch 90", "is not TOML"),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in NEEDED
    with pytest.raises(UsageError, match=r"xpu\.toml is not ") as caught:
        load(tmp_path, NEEDED.replace(old, new))
    assert said in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        targets.load(tmp_path / "xpu.toml")


def test_unknown_target() -> None:
    with pytest.raises(UsageError, match="no target sm_1"):
        targets.select(["sm_1"], [ROOT / "targets"])
