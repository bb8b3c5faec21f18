from __future__ import annotations

import pytest

from irdiff.errors import UsageError
from irdiff.resolve import programs


@pytest.mark.parametrize(
    ("command", "words", "name"),
    [
        ("bench/run.py --small", ["bench/run.py", "--small"], ("run", "small")),
        ("python bench/run.py", ["bench/run.py"], ("run", "run")),
        ("python3 -m pkg.bench 'a b'", ["-m", "pkg.bench", "a b"], ("pkg_bench", "a-b")),
        ("pytest tests/test_a.py", ["-m", "pytest", "tests/test_a.py"], ("pytest", "tests-test_a.py")),
    ],
)
def test_commands(command: str, words: list[str], name: tuple[str, str]) -> None:
    assert programs.words_of(command) == words
    assert programs.name_of(words) == name


@pytest.mark.parametrize("command", ["", "-m", "/tmp/run.py", "../run.py", "run.py 'open"])
def test_what_is_no_program_of_the_repository(command: str) -> None:
    with pytest.raises(UsageError, match="--program"):
        programs.words_of(command)
