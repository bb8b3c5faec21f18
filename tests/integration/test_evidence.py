"""`unchanged` is true from the user's edit to the verdict.

The rows are those of `tests.programs.evidence.rows`, all compared at once: with a store that a comparison of base
with other kernels has filled; and, in the wide tests, with an empty one, and compiling everything anew.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.programs.evidence import comparing, rows
from tests.programs.evidence.comparing import Repository

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    made = Repository.new(tmp_path_factory.mktemp("evidence") / "kernels")
    base = {path: text for row in rows.load() for path, text in row.base.items()}
    made.commit("base", base)
    made.commit("other", rows.computing_differently(base))
    made.commit("head", {path: text for row in rows.load() for path, text in row.head.items()})
    return made


def filled(repo: Repository, cache: Path) -> None:
    other = comparing.compare_commits(repo, "other", "base", cache=cache)
    assert other.run is not None, other.stderr


@pytest.mark.parametrize(
    ("fill", "words"),
    [
        pytest.param(filled, (), id="warm"),
        pytest.param(lambda *_: None, (), id="empty", marks=pytest.mark.wide),
        pytest.param(filled, ("--no-cache",), id="no-shortcut", marks=pytest.mark.wide),
    ],
)
def test_every_verdict(
    fill: Callable[[Repository, Path], None], words: tuple[str, ...], repo: Repository, cache: Path
) -> None:
    fill(repo, cache)
    found = comparing.compare_commits(repo, "base", "head", *words, cache=cache)
    wrong = {
        row.name: (row.about, found.verdicts_of(row.workload), row.expected)
        for row in rows.load()
        if tuple(found.verdicts_of(row.workload)) != row.expected
    }
    assert not wrong, wrong


def test_a_file_that_an_option_names_is_the_same_in_every_export(cache: Path, tmp_path: Path) -> None:
    """The catalog of one revision serves another where it may, and their exports lie in different folders."""
    row = next(row for row in rows.load() if row.name == "extern_library")
    repo = Repository.new(tmp_path / "kernels")
    repo.commit("first", {**row.base, "other.py": "A = 1\n"})
    repo.commit("second", {**row.base, "other.py": "A = 2\n"})
    repo.commit("third", {**row.head, "other.py": "A = 2\n"})
    for base, head, expected in (("first", "second", "unchanged"), ("second", "third", "changed")):
        compared = comparing.compare_commits(repo, base, head, cache=cache)
        assert compared.verdicts_of(row.workload) == [expected], compared.cases()
