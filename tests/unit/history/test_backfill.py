"""Which versions a backfill compiles and compares, and where it goes on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from irdiff.capture.catalogs import Wanted
from irdiff.errors import ToolchainError
from irdiff.history import backfill, database, versions
from irdiff.model import Verdict
from tests.unit.conftest import Build
from tests.unit.history import histories

CASE = "matmul/tma:fp16@sm_90"


class FakeSteps:
    """A backfill without compilers: it notes what it is asked to do."""

    def __init__(self, folder: Path, build) -> None:
        self.done: list[str] = []
        self.broken: set[str] = set()
        self.build = build
        self.choice = backfill.Choice(
            targets=(build.target(),),
            wanted=Wanted(tiers=("gate",)),
            corpus="c",
            compiler="",
            file=folder / "h.duckdb",
            runs=folder / "runs",
        )

    def run(self, *labels: str) -> backfill.Backfilled:
        return backfill.backfill([versions.release(label) for label in labels], self.choice, self)

    def say(self, text: str) -> None:
        pass

    def resolve(self, spec: str):
        label = spec.removeprefix("triton==")
        if label in self.broken:
            raise ToolchainError(f"{spec}: no such wheel\nmore")
        side = self.build.side()
        object.__setattr__(side.toolchain, "spec", spec)
        return side

    def measure(self, side):
        self.done.append(side.toolchain.spec.removeprefix("triton=="))
        return histories.inventory(histories.made(CASE, registers=10))

    def compare(self, sides, folder: Path):
        base, head = (side.toolchain.spec.removeprefix("triton==") for side in sides)
        self.done.append(f"{base}..{head}")
        assert folder.parent == self.choice.runs
        assert folder.name.startswith(f"{base}..{head}-")
        return histories.run(base, head, self.build.case(CASE, Verdict.UNCHANGED))


@pytest.fixture
def steps(tmp_path: Path, build) -> FakeSteps:
    return FakeSteps(tmp_path, build)


def test_each_version_is_compiled_once_and_neighbours_are_compared(steps: FakeSteps) -> None:
    found = steps.run("3.7.0", "3.8.0", "3.9.0")
    assert steps.done == ["3.7.0", "3.8.0", "3.7.0..3.8.0", "3.9.0", "3.8.0..3.9.0"]
    assert (len(found.measured), len(found.compared), found.known, found.gaps) == (3, 2, 0, ())
    with database.reading(steps.choice.file) as history:
        names = history.rows("SELECT version FROM versions ORDER BY sort_key")
    assert [name for (name,) in names] == ["triton==3.7.0", "triton==3.8.0", "triton==3.9.0"]


def test_what_was_done_is_not_done_again(steps: FakeSteps) -> None:
    steps.run("3.7.0", "3.8.0")
    steps.done.clear()
    assert steps.run("3.7.0", "3.8.0").known == 3
    assert steps.done == []
    steps.run("3.7.0", "3.8.0", "3.9.0")
    assert steps.done == ["3.9.0", "3.8.0..3.9.0"]


def test_it_goes_on_where_it_was_stopped(steps: FakeSteps, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(_sides, _folder):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(steps, "compare", stop)
        steps.run("3.7.0", "3.8.0")
    steps.done.clear()
    steps.run("3.7.0", "3.8.0")
    assert steps.done == ["3.7.0..3.8.0"]


def test_a_version_that_cannot_be_had_is_a_gap(steps: FakeSteps) -> None:
    steps.broken = {"3.8.0"}
    found = steps.run("3.7.0", "3.8.0", "3.9.0")
    assert steps.done == ["3.7.0", "3.9.0", "3.7.0..3.9.0"]
    assert found.gaps == ("3.8.0: triton==3.8.0: no such wheel",)


TARGET = Build.target()


@pytest.mark.parametrize(
    "other",
    [
        {"wanted": Wanted(tiers=("core",))},
        {"corpus": "edited kernels"},
        {"compiler": "another compiler"},
        {"targets": (replace(TARGET, warp_size=64),)},
        {"targets": (replace(TARGET, facts={"shared_bytes": 1}),)},
    ],
    ids=["tiers", "corpus", "compiler", "target", "facts of a target"],
)
def test_another_choice_is_another_backfill(steps: FakeSteps, other: dict[str, Any]) -> None:
    steps.run("3.8.0")
    steps.done.clear()
    steps.choice = replace(steps.choice, **other)
    steps.run("3.8.0")
    assert steps.done == ["3.8.0"]
