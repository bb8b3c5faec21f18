from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from irdiff.model import Run, Verdict
from irdiff.report import terminal
from irdiff.report.view import LISTED
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
    assert any(len(line) > 80 for line in text.splitlines())
    assert "triton==3.8.0 (aaaaaaaaaaaa) -> triton==3.9.0" in text


def test_a_terminal_gets_colour() -> None:
    assert "\x1b[" in shown(large_run(60, 6), is_terminal=True)


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


@pytest.mark.parametrize("width", [80, 120])
def test_a_group_is_a_line_that_fits(width: int) -> None:
    text = shown(large_run(200, 40), is_terminal=True, width=width)
    lines = [re.sub(r"\x1b\[[\d;]*m", "", line) for line in text.splitlines()]
    groups = [line for line in lines if re.match(r" +\d+ g:\w+ ", line)]
    assert len(groups) == LISTED.groups
    assert max(map(len, groups)) <= min(width, 100)


def test_an_id_is_whole_and_says_who_disagrees() -> None:
    case = make_case(1, Verdict.CHANGED)
    long = replace(case, id="family/" + "w" * 90 + ":label@sm_90", nondeterministic=("head",))
    text = shown(make_run((case, long)))
    assert text.count(long.id) >= 2
    assert "nondeterministic at head" in text.splitlines()[0]
