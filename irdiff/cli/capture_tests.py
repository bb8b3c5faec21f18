"""`irdiff capture --tests`: what the tests of a repository launch, as a corpus of IR."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict
from pathlib import Path

import click

from irdiff.cli import options, screen
from irdiff.cli.test_arguments import TestArguments
from irdiff.config import Config
from irdiff.errors import ExitCode, UsageError
from irdiff.model import Target
from irdiff.resolve import test_cases, test_sides
from irdiff.resolve.sides import SideOptions
from irdiff.resolve.test_cases import TestCases
from irdiff.resolve.test_sides import TestOptions
from irdiff.words import counted

_FILE = "tests.json"
"""The tests and their launches, next to the corpus."""


def capture(
    words: TestArguments, spec: str, packages: tuple[str, ...], target: Target, out: Path, config: Config
) -> int:
    """Writes the corpus, with a list of the tests and their launches. The exit code."""
    if out.exists() and any(out.iterdir()):
        raise UsageError(f"{out} is not empty", hint="name a folder that is not there yet: --out DIR")
    chosen = TestOptions(paths=words.paths, sample=words.most, targets=(target,))
    sides = SideOptions(repo=None, corpus=None, triton=None, build=False, packages=packages)
    with screen.status_line():
        found = test_sides.recorded(spec, chosen, sides, config, click.echo)
    test_cases.corpus(found, "head", out, copied=True)
    options.write_output(out / _FILE, json.dumps([row for each in found for row in _rows(each)], indent=1))
    for each in found:
        click.echo(_summary(each, out))
    return ExitCode.DONE if any(each.pairs for each in found) else ExitCode.NOT_COMPARED


def _rows(found: TestCases) -> list[dict[str, object]]:
    tests = found.recordings.head.tests
    return [
        {**asdict(test), "launches": found.cases[identity], "target": found.target.name}
        for identity, test in sorted(tests.items())
    ]


def _summary(found: TestCases, out: Path) -> str:
    tests = found.recordings.head.tests.values()
    outcomes = Counter(test.outcome for test in tests)
    said = ", ".join(f"{count:,} {outcome}" for outcome, count in outcomes.most_common())
    calls = sum(test.calls for test in tests)
    followed = sum(test.is_followed for test in tests)
    return (
        f"{found.target.name}: {counted(len(tests), 'test')} ({said}), {followed:,} wholly followed; "
        f"{calls:,} launch{'' if calls == 1 else 'es'}, {len(found.pairs):,} different, in {out}"
    )
