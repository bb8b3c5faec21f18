"""What a build says while it runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from irdiff.resolve.toolchains.building.build_progress import BuildProgress, duration

LOG = """\
# lib/A.cpp
direct_cache_hit
local_storage_hit
# lib/B.cpp
cache_miss
direct_cache_miss
preprocessed_cache_miss
# lib/C.cpp
preprocessed_cache_hit
direct_cache_miss
"""


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def said() -> list[str]:
    return []


def step(number: int, what: str = "Building CXX object lib/CMakeFiles/Lib.dir/File.cpp.o") -> str:
    return f"[{number}/100] {what}"


def test_what_is_left_follows_from_the_last_compilations(tmp_path: Path, said: list[str]) -> None:
    clock = Clock()
    progress = BuildProgress("main (abc)", said.append, tmp_path / "none", clock)
    progress.on_line("-- The CXX compiler is clang")
    assert said == [], "configuring takes seconds"
    for number in range(1, 41):
        clock.now_s += 0.01
        progress.on_line(step(number, "Building Ops.h.inc..."))
    assert progress.left_s() is None, "tables of operations tell nothing of the time that C++ takes"
    for number in range(41, 51):
        clock.now_s += 10
        progress.on_line(step(number))
    assert progress.left_s() == pytest.approx(500)
    assert said[-1].startswith("main (abc): native build 50/100, 1 min 40 s, about 8 min 20 s left: ")
    clock.now_s += 5
    progress.on_tick()
    assert progress.left_s() == pytest.approx(495), "time passes while nothing is printed"


def test_hits_of_the_compiler_cache_are_counted_as_they_come(tmp_path: Path, said: list[str]) -> None:
    statistics = tmp_path / "ccache-statistics"
    progress = BuildProgress("x", said.append, statistics, Clock())
    progress.on_line(step(1))
    assert "ccache" not in said[-1]
    statistics.write_text(LOG)
    progress.on_tick()
    assert "ccache 2 of 3 hits" in said[-1]


def test_the_end_of_a_name_tells_files_apart(tmp_path: Path, said: list[str]) -> None:
    what = f"Building CXX object {'folder/' * 9}CMakeFiles/Lib.dir/BarrierOpToLLVM.cpp.o"
    BuildProgress("x", said.append, tmp_path / "none", Clock()).on_line(step(1, what))
    assert said[-1].endswith("CMakeFiles/Lib.dir/BarrierOpToLLVM.cpp.o")
    assert "Building" not in said[-1]


def test_durations() -> None:
    assert [duration(s) for s in (0.4, 59, 60, 125, 3599, 3660)] == [
        "0 s",
        "59 s",
        "1 min 00 s",
        "2 min 05 s",
        "59 min 59 s",
        "1 h 01 min",
    ]
