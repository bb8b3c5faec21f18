"""How versions are named and sorted; which ones a backfill compiles and compares, and where it goes on."""

from contextlib import nullcontext
from dataclasses import dataclass, field, replace

import pytest
from packaging.version import Version as Packaged

from irdiff.errors import ToolchainError, UsageError
from irdiff.history import database, versions
from irdiff.history.backfill import Backfill
from irdiff.model import DEFAULT_OPTIONS, Verdict
from tests.unit import runs
from tests.unit.golden import golden
from tests.unit.history import histories

CASE = "matmul/tma:fp16@sm_90"


@dataclass(frozen=True, kw_only=True)
class FakeBackfill(Backfill):
    """One without compilers: it notes what it is asked to do."""

    done: list[str] = field(default_factory=list)
    broken: set[str] = field(default_factory=set)

    def through(self, *labels):
        """What came of it, and what was done for it."""
        self.done.clear()
        return self.run([versions.release(label) for label in labels]), [*self.done]

    def resolve(self, spec):
        if spec in self.broken:
            raise ToolchainError(f"{spec}: no such wheel\nmore")
        return runs.side(spec)

    def measure(self, side):
        self.done.append(side.toolchain.spec.removeprefix("triton=="))
        return histories.inventory(histories.made(CASE, registers=10))

    def compare(self, sides, folder):
        base, head = (side.toolchain.spec.removeprefix("triton==") for side in sides)
        self.done.append(f"{base}..{head}")
        assert folder.parent == self.runs
        return histories.run(base, head, runs.case(CASE, Verdict.UNCHANGED))


@pytest.fixture
def steps(tmp_path, config):
    return FakeBackfill(
        config=config,
        targets=(runs.target(),),
        sides=None,  # type: ignore[arg-type]  # no side is made
        options=replace(DEFAULT_OPTIONS, tiers=("gate",)),
        corpus="c",
        compiler="",
        file=tmp_path / "h.duckdb",
        runs=tmp_path / "runs",
        say=lambda _: None,
        progress=nullcontext,
    )


def test_each_version_is_compiled_once_and_neighbours_are_compared(steps):
    found, done = steps.through("3.7.0", "3.8.0")
    assert done == ["3.7.0", "3.8.0", "3.7.0..3.8.0"]
    assert (len(found.measured), len(found.compared), found.already_there, found.gaps) == (2, 1, 0, ())
    again, done = steps.through("3.7.0", "3.8.0")
    assert (again.already_there, done) == (3, [])
    assert steps.through("3.7.0", "3.8.0", "3.9.0")[1] == ["3.9.0", "3.8.0..3.9.0"]
    with database.reading(steps.file) as history:
        names = history.rows("SELECT version FROM versions ORDER BY sort_key")
    assert [name for (name,) in names] == ["triton==3.7.0", "triton==3.8.0", "triton==3.9.0"]


def test_it_goes_on_where_it_was_stopped(steps, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(FakeBackfill, "compare", stop)
        steps.through("3.7.0", "3.8.0")
    assert steps.through("3.7.0", "3.8.0")[1] == ["3.7.0..3.8.0"]


def test_a_version_that_cannot_be_had_is_a_gap(steps):
    steps.broken.add("triton==3.8.0")
    found, done = steps.through("3.7.0", "3.8.0", "3.9.0")
    assert done == ["3.7.0", "3.9.0", "3.7.0..3.9.0"]
    assert found.gaps == ("3.8.0: triton==3.8.0: no such wheel",)


def test_texts_sort_as_versions_do():
    ordered = golden("versions")["ordered"]
    assert sorted({*ordered}, key=versions.sort_key) == ordered == sorted({*ordered}, key=Packaged)
    assert versions.sort_key("no version") < versions.sort_key(ordered[0]), "it would be the newest for ever"


def test_a_side_is_a_version():
    run = runs.run(runs.case())
    for row in golden("versions")["side"]:
        base = versions.of_run(
            replace(run, base=replace(run.base, spec=row["spec"], digest="0123456789abcdef"))
        ).base
        assert {"name": base.name, "series": base.series, "label": base.label}.items() <= row.items()


def test_specs_are_one_series_in_order_and_each_once(tmp_path, config):
    found = versions.of_specs(["triton==3.10.0", "triton==3.9.0", "triton==3.10.0"], 0, tmp_path, config)
    assert [point.label for point in found] == ["3.9.0", "3.10.0"]
    with pytest.raises(UsageError, match="nightlies, releases"):
        versions.of_specs(["triton==3.9.0", "triton==3.9.0.dev20250601"], 0, tmp_path, config)
    for spec in ("3.4.0", "wheel:a..b", "triton>=3"):
        with pytest.raises(UsageError, match="range of versions"):
            versions.of_specs([spec], 0, tmp_path, config)
