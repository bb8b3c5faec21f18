"""The titles of all groups of two real comparisons, as `python -m tests.programs.titles` wrote them."""

import re

import pytest

from irdiff.group import titles
from tests.programs.titles import DATA, read

NAMES = sorted(path.stem for path in DATA.glob("*.txt"))
assert NAMES


@pytest.mark.parametrize("name", NAMES)
def test_titles_are_those_that_were_read_and_judged(name):
    assert [row.line for row in read(name)] == (DATA / f"{name}.txt").read_text().splitlines()


@pytest.mark.parametrize("name", NAMES)
def test_each_is_bounded_says_something_and_calls_each_thing_by_its_name(name):
    for row in read(name):
        title = titles.of_group(row.members)
        assert 0 < len(title) <= titles.MAX_TITLE
        assert title != "other code"
        assert title.count("`") % 2 == 0
        bare = re.sub(r"`[^`]*`", "", title)
        assert not re.search(r"\bbarriers?\b|\bfences?\b|\bwaits?\b", bare), "of which language?"
        assert not re.search(r"(?<!\w)[+-]\d+ `", title), "counts are words, steps are of figures"


@pytest.mark.parametrize("name", NAMES)
def test_a_title_holds_for_each_of_its_cases(name):
    """Each case's own figures lie in the ranges of its group."""
    for row in read(name):
        shown = re.search(r"registers (-?\+?\d+) … ([-+]?\d+)(?!\d| on)", titles.of_group(row.members))
        for case, _ in row.members if shown else ():
            step = case.facts.head.get("registers", 0) - case.facts.base.get("registers", 0)
            assert int(shown[1]) <= step <= int(shown[2])
