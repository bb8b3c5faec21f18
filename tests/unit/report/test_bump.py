"""What a bump of a compiler did over all cases, from facts that are made up."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from irdiff.findings import Finding, FindingKind
from irdiff.model import Case, Run, Verdict
from irdiff.report import bump, escape, html, markdown, terminal
from irdiff.report.shown import PLAIN
from tests.unit.conftest import Build

SAME = (Finding(FindingKind.SAME_INSTRUCTIONS),)


def changed(name: str, base: dict[str, int], head: dict[str, int], **more: object) -> Case:
    facts = {"spill_store_bytes": 0, "spill_load_bytes": 0, "warps_per_multiprocessor": 16}
    return Build.case(name, Verdict.CHANGED, base={**facts, **base}, head={**facts, **head}, **more)


def cases() -> list[Case]:
    return [
        changed("matmul/a:x@sm_90", {"ptx.total": 100, "registers": 64}, {"ptx.total": 90, "registers": 64}),
        changed("matmul/b:x@sm_90", {"ptx.total": 100, "registers": 64}, {"ptx.total": 150, "registers": 80}),
        changed(
            "matmul/c:x@sm_90",
            {"registers": 255, "warps_per_multiprocessor": 8},
            {"registers": 255, "warps_per_multiprocessor": 4, "spill_store_bytes": 32},
        ),
        changed("matmul/d:x@sm_90", {"ptx.total": 7}, {"ptx.total": 7}, findings=SAME),
        changed("matmul/e:x@sm_90", {"ptx.total": 7}, {"ptx.total": 8}, findings=SAME),
        Build.case("matmul/f:x@sm_90", Verdict.UNCHANGED),
        changed("softmax/g:x@gfx942", {"vgprs": 100}, {"vgprs": 90}),
        Build.case("softmax/h:x@gfx942", Verdict.BROKEN),
    ]


@pytest.fixture
def run(build: type[Build]) -> Run:
    return build.run(*cases())


def test_each_measure_counts_better_same_and_worse(run: Run) -> None:
    found = bump.of_run(run)
    whole = {row.measure.name: row for row in found.whole.distributions}
    instructions = whole["instructions"]
    counts = (instructions.better, instructions.same, instructions.worse, instructions.unknown)
    assert counts == (1, 2, 2, 2)
    assert instructions.quantiles[0] == pytest.approx(-0.1)
    assert instructions.quantiles[-1] == pytest.approx(0.5)
    assert [change.case_id for change in instructions.worst] == ["matmul/b:x@sm_90", "matmul/e:x@sm_90"]
    registers = whole["registers"]
    assert (registers.better, registers.worse) == (1, 1)
    occupancy = whole["occupancy"]
    assert (occupancy.better, occupancy.worse) == (0, 1), "fewer warps are worse"


def test_the_parts_are_targets_and_families_in_which_something_moved(run: Run) -> None:
    found = bump.of_run(run)
    assert [(part.name, part.compared, part.changed) for part in found.targets] == [
        ("sm_90", 6, 5),
        ("gfx942", 1, 1),
    ]
    assert [part.name for part in found.families] == ["matmul sm_90", "softmax gfx942"]
    assert found.not_compared == {Verdict.BROKEN: 1}


def test_only_scheduling_moved_where_instructions_and_all_measures_are_the_same(run: Run) -> None:
    assert [case.id for case in run.cases if bump.only_scheduled(case)] == ["matmul/d:x@sm_90"]
    assert bump.of_run(run).targets[0].quiet == 1


def test_outliers_are_the_worst_first_and_say_why(run: Run) -> None:
    found = {row.case_id: row for row in bump.of_run(run).outliers}
    assert next(iter(found)) == "matmul/c:x@sm_90"
    assert found["matmul/c:x@sm_90"].why == ("begins to spill: 0 → 32", "occupancy 8 → 4 (-50.0%)")
    assert "matmul/d:x@sm_90" not in found


def test_quantiles_lie_between_neighbours() -> None:
    assert bump.quantile([0.0, 1.0, 2.0], 0.5) == 1.0
    assert bump.quantile([0.0, 1.0], 0.25) == 0.25
    assert bump.quantile([3.0], 0.95) == 3.0


def test_a_run_of_tools_is_shown_as_a_bump_without_being_asked(run: Run) -> None:
    assert not bump.is_wanted(run)
    tool = replace(run.head, spec="llvm:/usr/lib/llvm-22")
    assert bump.is_wanted(replace(run, head=tool))


def test_every_form_says_distributions_then_outliers_then_groups(run: Run, tmp_path: Path) -> None:
    as_bump = replace(PLAIN, is_bump=True)
    console = Console(record=True, width=200, file=(tmp_path / "out").open("w"))
    terminal.show(run, tmp_path, console, as_=as_bump)
    texts = [
        console.export_text(),
        markdown.render(run, as_=as_bump),
        html.render(run, tmp_path, as_=as_bump),
    ]
    for text in texts:
        assert "only scheduling or register names moved" in text
        assert "begins to spill" in text
        assert text.index("median") < text.index("begins to spill")
    assert "median" not in markdown.render(run)
    assert '<section id="bump">' not in html.render(run, tmp_path)


def test_names_of_cases_are_escaped(build: type[Build], tmp_path: Path) -> None:
    odd = changed("matmul/a:<script>`x`@sm_90", {"ptx.total": 100}, {"ptx.total": 900})
    shown = escape.code(odd.id, limit=160)
    run = build.run(odd)
    page = html.render(run, tmp_path, as_=replace(PLAIN, is_bump=True))
    assert "<script>`x`" not in page
    text = markdown.render(run, as_=replace(PLAIN, is_bump=True))
    assert text.count(shown) >= 2, "in a tail and in the group"
