"""`irdiff capture --tests` records what the tests of a repository launch, as a corpus of IR."""

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


def capture(
    words: TestArguments, spec: str, packages: tuple[str, ...], target: Target, out: Path, config: Config
) -> int:
    """Writes the corpus and the list of tests. Returns the exit code. Raises NothingComparedError."""
    if out.exists() and any(out.iterdir()):
        raise UsageError(f"{out} is not empty", hint="name a folder that is not there yet: --out DIR")
    chosen = TestOptions(paths=words.paths, sample=words.most, targets=(target,))
    sides = SideOptions(repo=None, corpus=None, triton=None, build=False, packages=packages)
    with screen.status_line():
        recorded = test_sides.recorded(spec, chosen, sides, config, click.echo)
    test_cases.corpus(recorded, "head", out, copied=True)
    options.write_output(
        out / _FILE, json.dumps([record for each in recorded for record in _test_records(each)], indent=1)
    )
    for each in recorded:
        click.echo(_summary(each, out))
    if not any(each.pairs for each in recorded):
        raise test_cases.nothing_recorded(recorded)
    return ExitCode.DONE


def _test_records(recorded: TestCases) -> list[dict[str, object]]:
    tests = recorded.recordings.head.tests
    return [
        {**asdict(test), "launches": recorded.cases[identity], "target": recorded.target.name}
        for identity, test in sorted(tests.items())
    ]


def _summary(recorded: TestCases, out: Path) -> str:
    tests = recorded.recordings.head.tests.values()
    outcomes = Counter(test.outcome for test in tests)
    outcomes_text = ", ".join(f"{count:,} {outcome}" for outcome, count in outcomes.most_common())
    calls = sum(test.calls for test in tests)
    followed = sum(test.is_followed for test in tests)
    return (
        f"{recorded.target.name}: {counted(len(tests), 'test')} ({outcomes_text}), "
        f"{followed:,} wholly followed; "
        f"{calls:,} launch{'' if calls == 1 else 'es'}, {len(recorded.pairs):,} different, in {out}"
    )
