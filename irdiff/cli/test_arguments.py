"""`irdiff compare --tests`: which tests launch something that changed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from irdiff.cli import options
from irdiff.config import Config
from irdiff.errors import UsageError
from irdiff.gate import tests_answer
from irdiff.gate.tests_answer import TestsAnswer, TestStatus
from irdiff.model import Run, Sides, Target
from irdiff.resolve import test_sides
from irdiff.resolve.sides import Side, SideOptions
from irdiff.resolve.test_sides import TestOptions, TestSides

_ALL = "."
FILE = "tests.json"
"""In a run folder."""


@dataclass(frozen=True, kw_only=True)
class TestArguments:
    """The options below, under their names."""

    __test__ = False

    tests: tuple[str, ...]
    sample: int | None
    tests_changed: Path | None = None
    tests_unchanged: Path | None = None

    @property
    def are_given(self) -> bool:
        if not self.tests and (self.sample or self.tests_changed or self.tests_unchanged):
            raise UsageError(
                "--sample, --tests-changed and --tests-unchanged need --tests",
                hint="irdiff compare main HEAD --tests tests --tests-changed FILE",
            )
        return bool(self.tests)

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(path for path in self.tests if path != _ALL)

    @property
    def files(self) -> tuple[Path, ...]:
        return tuple(path for path in (self.tests_changed, self.tests_unchanged) if path)


tests_option = click.option(
    "--tests",
    multiple=True,
    metavar="PATH",
    help="Record, without a GPU, what the repository's tests in PATH launch (`.`: all); repeatable.",
)
sample_option = click.option(
    "--sample",
    type=click.IntRange(min=1),
    help="Run N of the tests, the same ones each time, of all functions.",
)
chosen = options.gathered("tests", TestArguments, tests_option, sample_option)
given = options.gathered(
    "tests",
    TestArguments,
    tests_option,
    sample_option,
    click.option(
        "--tests-changed", type=options.PATH, help="Write the tests that launch changed code: pytest @FILE."
    ),
    click.option(
        "--tests-unchanged", type=options.PATH, help="Write the tests that launch only unchanged code."
    ),
)


class ComparedTests:
    """The tests of one comparison: run once its sides are resolved, answered once it has ended."""

    def __init__(self, words: TestArguments, say: Callable[[str], None]) -> None:
        self._words, self._say = words, say
        self._found: TestSides | None = None

    def resolve(
        self,
        specs: tuple[str | None, str | None],
        wanted: SideOptions,
        targets: tuple[Target, ...],
        config: Config,
    ) -> Sides[Side]:
        chosen = TestOptions(paths=self._words.paths, sample=self._words.sample, targets=targets)
        self._found = test_sides.resolve(*specs, chosen, wanted, config, self._say)
        return self._found.sides

    def report(self, run: Run, folder: Path) -> None:
        """Says the answer, and writes it to the run folder and to the files that a user named."""
        assert self._found is not None
        answer = tests_answer.answer(run, self._found.cases)
        for sentence in tests_answer.sentences(answer):
            self._say(sentence)
        options.write_output(folder / FILE, _json(answer))
        for path, status in (
            (self._words.tests_changed, TestStatus.CHANGED),
            (self._words.tests_unchanged, TestStatus.UNCHANGED),
        ):
            if path:
                options.write_output(path, "".join(f"{name}\n" for name in answer.names(status)))


def _json(answer: TestsAnswer) -> str:
    return json.dumps({"schema": "irdiff-tests/1", **asdict(answer)}, indent=1) + "\n"
