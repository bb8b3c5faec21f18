from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import click

from irdiff.cli import options
from irdiff.config import Config
from irdiff.errors import UsageError
from irdiff.model import Run, Sides, Target, TestStatus
from irdiff.resolve import test_sides
from irdiff.resolve.sides import Side, SideOptions
from irdiff.resolve.test_cases import TestCases
from irdiff.resolve.test_sides import TestOptions, TestSides

_ALL = "."
_MOST = 2000
"""The default sample of tests: a laptop records so many in minutes."""


@dataclass(frozen=True, kw_only=True)
class TestArguments:
    __test__ = False

    tests: tuple[str, ...]
    sample: str | None
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
    def most(self) -> int | None:
        """The most tests that run; None means all."""
        if self.sample is None:
            return _MOST
        return None if self.sample == "all" else int(self.sample)

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
    help="Take what the repository's pytest tests launch, without a GPU. PATH is a file, a folder or a test, "
    "and `.` is all of them. Repeatable.",
)


def _checked(_: click.Context, __: click.Parameter, sample: str | None) -> str | None:
    if sample is not None and sample != "all" and not (sample.isdecimal() and int(sample) > 0):
        raise click.BadParameter(f"{sample} is neither a number of tests nor `all`")
    return sample


sample_option = click.option(
    "--sample",
    metavar="N|all",
    callback=_checked,
    help="Run a fixed sample of N tests, spread over all test functions; default: 2000.",
)
recording_options = options.gathered("tests", TestArguments, tests_option, sample_option)
comparison_options = options.gathered(
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
    """Runs the tests when the sides are resolved, and lists them when the comparison has ended."""

    def __init__(self, words: TestArguments, say: Callable[[str], None]) -> None:
        self._words, self._say = words, say
        self._sides: TestSides | None = None

    def resolve(
        self,
        specs: tuple[str | None, str | None],
        wanted: SideOptions,
        targets: tuple[Target, ...],
        config: Config,
    ) -> Sides[Side]:
        chosen = TestOptions(paths=self._words.paths, sample=self._words.most, targets=targets)
        self._sides = test_sides.resolve(*specs, chosen, wanted, config, self._say)
        return self._sides.sides

    def cases(self) -> tuple[TestCases, ...]:
        assert self._sides is not None
        return self._sides.cases

    def write(self, run: Run) -> None:
        """Writes the lists of changed and unchanged tests to the files that the user named."""
        for path, status in (
            (self._words.tests_changed, TestStatus.CHANGED),
            (self._words.tests_unchanged, TestStatus.UNCHANGED),
        ):
            if path and run.tests:
                options.write_output(path, "".join(f"{name}\n" for name in run.tests.names(status)))
