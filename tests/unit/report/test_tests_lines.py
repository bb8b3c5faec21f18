"""What a reader is told of tests, on every page."""

import io

import pytest
from rich.console import Console

from irdiff.model import TestAnswer, TestsAnswer, TestStatus, Verdict
from irdiff.report import html, markdown, terminal, tests_lines
from tests.unit.runs import case, run

CHANGED = "launches code that changed: matmul/tma:fp16@sm_90"


def answer(name, status, reason="", target="sm_90"):
    return TestAnswer(name=name, target=target, status=status, reason=reason, cases=())


TESTS = (
    answer("t.py::a", TestStatus.CHANGED, CHANGED),
    answer("t.py::a", TestStatus.UNCHANGED, target="gfx950"),
    answer("t.py::b", TestStatus.UNCHANGED),
    answer("t.py::c", TestStatus.NOT_KNOWN, "failed here: IndexError"),
    answer("t.py::d", TestStatus.NOT_KNOWN, "failed here: TypeError"),
    answer("t.py::d", TestStatus.NOT_KNOWN, "without a launch here", target="gfx950"),
)


def answered(collected):
    return TestsAnswer(
        tests=TESTS, collected=collected, cases=1200, changed_cases=1, uncollected=("test_tools.py",)
    )


def test_the_answer_comes_first_and_reasons_are_counted_by_test():
    assert [*tests_lines.sentences(answered(4))] == [
        "1 of 1,200 specializations changed; it is launched by 1 of 4 tests",
        "1 test launches only unchanged code",
        "2 tests not known: 2 failed here",
        "1 file of tests not collected: test_tools.py",
    ]


def test_a_sample_is_said_to_be_one():
    first = next(tests_lines.sentences(answered(9000)))
    assert first.endswith(
        "launched by 1 of the 4 tests that ran. There are 9,000 tests: `--sample all` runs all of them"
    )


@pytest.mark.parametrize("page", ["terminal", "markdown", "html"])
def test_every_page_has_the_answer(page, tmp_path):
    made = run(case(verdict=Verdict.CHANGED), tests=answered(4))
    if page == "terminal":
        console = Console(file=io.StringIO(), width=200)
        terminal.show(made, tmp_path, console)
        text = console.file.getvalue()
    else:
        text = str({"markdown": markdown, "html": html}[page].render(made, tmp_path))
    for sentence in tests_lines.sentences(answered(4)):
        assert sentence.replace("_", "\\_" if page == "markdown" else "_") in text
    assert ("t.py::a" in text) == (page == "html")
