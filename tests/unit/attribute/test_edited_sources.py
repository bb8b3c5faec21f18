"""What is said of edited native sources: the passes that they define, the cases that run these, and the lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from irdiff.attribute import edited_sources
from irdiff.attribute.edited_sources import EditedSources
from irdiff.attribute.exercise import CaseExercise
from irdiff.model import Launch, Pair, Sides, Target
from irdiff.store import Store
from tests.unit.conftest import Build

MANY = {"lib/Axis.cpp": ["A", "B", "C", "D"], "python/src/llvm.cc": []}


class _Exerciser:
    """Each launch runs one pass, and nothing comes of it."""

    def __init__(self, **_: Any) -> None: ...

    def of_launch(self, launch: Launch, target: Target) -> CaseExercise:
        case_id = f"{launch.id}@{target.name}"
        return CaseExercise(case_id=case_id, ran=frozenset({"A"}), acted=frozenset(), is_whole=True)


def sources(
    build: type[Build], edited: Mapping[str, Sequence[str]], place: Path, *pairs: Pair
) -> EditedSources:
    return EditedSources(
        sides=Sides(base=build.side("main (1a2b)", edited=edited), head=build.side("HEAD (3c4d)")),
        pairs=pairs,
        compiler=cast("Any", None),
        replayer=cast("Any", None),
        store=Store(place),
        jobs=1,
        report=lambda step: None,
    )


def test_the_passes_of_a_source_are_named_and_only_a_few(build: type[Build], tmp_path: Path) -> None:
    (note,) = sources(build, MANY, tmp_path).named()
    assert note.endswith(": lib/Axis.cpp: A, B, C and 1 more; python/src/llvm.cc: no pass")


def test_nothing_is_said_where_no_source_is_edited(build: type[Build], tmp_path: Path) -> None:
    found = sources(build, {}, tmp_path)
    assert (found.named(), found.exercised(), found.lines()) == ((), (), None)


def test_cases_are_counted_and_the_command_that_counts_lines_is_named(
    build: type[Build], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edited_sources, "Exerciser", _Exerciser)
    launch = build.launch("matmul/tma:x@sm_90", "base")
    pair = Pair(
        id="matmul/tma:x@sm_90",
        launch_id="matmul/tma:x",
        target=build.target(),
        base=launch,
        head=None,
        supported=Sides(base=True, head=True),
        moved=False,
    )
    reached, lines = sources(build, {"lib/Axis.cpp": ["A"]}, tmp_path, pair).exercised()
    assert reached.startswith(
        "lib/Axis.cpp: defines A; at base 1 of 1 cases run it, and in 0 it does something"
    )
    assert lines.endswith("(irdiff toolchain build HEAD --coverage main)")
