from __future__ import annotations

import io
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from irdiff.model import Run, Verdict
from irdiff.report import terminal
from tests.unit.report.runs import large_run, make_case, make_run
from tests.unit.report.test_markdown import hostile

FOLDER = Path("run")


def shown(run: Run, *, is_terminal: bool = False, width: int = 80) -> str:
    file = io.StringIO()
    terminal.show(run, FOLDER, Console(file=file, force_terminal=is_terminal, width=width))
    return file.getvalue()


def test_a_pipe_gets_plain_ascii_lines_that_are_not_wrapped() -> None:
    text = shown(large_run(60, 6))
    assert text.isascii()
    assert text.splitlines()[0].startswith(
        "3 cases broken, 29 of 57 compared cases changed in 6 distinct ways"
    )
    assert any(len(line) > 80 for line in text.splitlines())
    assert "triton==3.8.0 (aaaaaaaaaaaa) -> triton==3.9.0" in text


def test_a_terminal_gets_colour() -> None:
    assert "\x1b[" in shown(large_run(60, 6), is_terminal=True)


def test_broken_comes_first_then_groups_then_the_matrix() -> None:
    text = shown(large_run(60, 6))
    places = [
        text.index(word)
        for word in ("broken: 3", "change groups", "changed of all cases", "by family and", "blast radius:")
    ]
    assert places == sorted(places)


def test_without_groups_the_changed_cases_are_listed_whole() -> None:
    case = make_case(1, Verdict.CHANGED)
    long = replace(case, id="family/" + "w" * 90 + ":label@sm_90", nondeterministic=("head",))
    text = shown(make_run((case, long)))
    assert long.id in text
    assert "head disagrees with itself, base does not: 1 case" in text


def test_a_base_that_disagrees_with_itself_is_good_news_of_head() -> None:
    case = replace(make_case(1, Verdict.CHANGED), nondeterministic=("base",))
    text = shown(make_run((case,)))
    assert "1 nondeterministic at base alone" in text
    assert "base disagrees with itself, head does not: 1 case" in text
    assert case.id in text.partition("base disagrees with itself")[2]


def test_the_same_error_is_one_line_with_a_count() -> None:
    cases = [replace(make_case(n, Verdict.BROKEN), error=f"head: needs {n} bytes") for n in range(36)]
    lines = shown(make_run(tuple(cases))).splitlines()
    assert [line for line in lines if "needs" in line] == [
        f"{min(case.id for case in cases)} and 35 more  head: needs ... bytes"
    ]


def test_groups_that_are_left_out_are_counted() -> None:
    assert "... and 25 more groups" in shown(large_run(200, 40))


def test_hostile_strings_do_nothing() -> None:
    text = shown(hostile(), is_terminal=True)
    assert "\x1b[2J" not in text
    assert "\u202e" not in text


def test_the_picture_is_whole_fetches_nothing_and_is_the_same_twice() -> None:
    run = large_run(60, 6)
    picture = terminal.svg(run)
    assert ET.fromstring(picture).tag.endswith("svg")
    assert "url(http" not in picture.replace(" ", "")
    assert "@font-face" not in picture
    assert picture == terminal.svg(run)


def test_revisions_of_kernels_are_shown_with_their_compiler() -> None:
    run = large_run(6, 1)
    base = replace(run.base, revision="main 1a2b3c4")
    head = replace(run.head, revision="HEAD 5d6e7f8")
    two = shown(replace(run, base=base, head=head))
    assert "main 1a2b3c4, triton 3.8.0 (aaaaaaaaaaaa) -> HEAD 5d6e7f8, triton 3.9.0 (" in two
    one = shown(replace(run, base=replace(head, revision="main 1a2b3c4"), head=head))
    assert "\nmain 1a2b3c4 -> HEAD 5d6e7f8, triton 3.9.0  in " in one


def test_what_was_renamed_is_said_once_for_all_targets() -> None:
    cases = [
        replace(make_case(1, Verdict.UNCHANGED), id=f"a/b:c@{name}", renamed_from=f"a/old:c@{name}")
        for name in ("sm_90", "gfx942")
    ]
    text = shown(make_run(tuple(cases)))
    assert text.count("renamed: a/old:c -> a/b:c\n") == 1


def test_a_program_has_a_row_for_each_kernel_that_it_launches() -> None:
    case = make_case(0, Verdict.UNCHANGED)
    cases = tuple(
        replace(case, id=f"program/run:small/{kernel}@sm_90", workload="program/run", kernel=kernel)
        for kernel in ("rope", "norm")
    )
    text = shown(make_run(cases))
    assert "program/run norm" in text and "program/run rope" in text
