"""`unchanged` is true from the user's edit to the verdict: by default, from an empty store, and without shortcut.

The rows are those of `tests.programs.evidence.rows`. Each is compared three times, all rows at once: with a store that the
comparisons of base with itself and of base with other kernels have filled, with an empty one, and compiling
everything anew.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.programs.evidence import comparing, rows
from tests.programs.evidence.comparing import Compared, Repository

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1800)]

ROWS = rows.load()
WAYS = ("warm", "empty", "no-shortcut")


@pytest.fixture(scope="module")
def compared(shared_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Compared]:
    return comparing.once(
        tmp_path_factory, "evidence", lambda: _compared(shared_cache, tmp_path_factory.mktemp("evidence"))
    )


def _compared(shared_cache: Path, folder: Path) -> dict[str, Compared]:
    repo = Repository.new(folder / "kernels")
    base = {path: text for row in ROWS for path, text in row.base.items()}
    repo.commit("base", base)
    repo.commit("other", rows.computing_differently(base))
    repo.commit("head", {path: text for row in ROWS for path, text in row.head.items()})
    warm = comparing.new_cache(folder / "warm", shared_cache)
    for other in ("base", "other"):
        filled = comparing.compare_commits(repo, "base", other, cache=warm)
        assert filled.run is not None, filled.stderr
    empty = comparing.new_cache(folder / "empty", shared_cache)
    return {
        "warm": comparing.compare_commits(repo, "base", "head", cache=warm),
        "empty": comparing.compare_commits(repo, "base", "head", cache=empty),
        "no-shortcut": comparing.compare_commits(repo, "base", "head", "--no-cache", cache=warm),
    }


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_verdict(row: rows.Row, way: str, compared: dict[str, Compared]) -> None:
    found = compared[way]
    assert tuple(found.verdicts_of(row.workload)) == row.expected, (
        row.about,
        [
            (case["id"], case["error"], case["findings"])
            for case in found.cases()
            if row.workload + ":" in case["id"]
        ],
    )


def test_a_file_that_an_option_names_is_the_same_in_every_export(shared_cache: Path, tmp_path: Path) -> None:
    """The catalog of one revision serves another where it may, and their exports lie in different folders."""
    row = next(row for row in ROWS if row.name == "extern_library")
    repo = Repository.new(tmp_path / "kernels")
    repo.commit("first", {**row.base, "other.py": "A = 1\n"})
    repo.commit("second", {**row.base, "other.py": "A = 2\n"})
    repo.commit("third", {**row.head, "other.py": "A = 2\n"})
    cache = comparing.new_cache(tmp_path / "cache", shared_cache)
    for base, head, expected in (("first", "second", "unchanged"), ("second", "third", "changed")):
        compared = comparing.compare_commits(repo, base, head, cache=cache)
        assert compared.verdicts_of(row.workload) == [expected], compared.cases()
