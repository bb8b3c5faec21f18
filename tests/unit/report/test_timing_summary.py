"""What reports and the terminal say of timings: faults first, what is slower, and why there is no verdict."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from irdiff.cli import time_command as command
from irdiff.report import markdown, timing_summary
from irdiff.timing.results import Measurement, NotTimed, OutputStatus, Speed, Unclear
from tests.unit.report.test_reports import NOWHERE
from tests.unit.runs import large_run
from tests.unit.timing.test_timing_file import check, found, gpu

WHY = "only 3 processes measured it, a verdict needs 18"
MESSAGE = "while timing, in process 3 of 18: did not end within its limit"


def measurement(speed, why="", ratio=1.0):
    fields = dict.fromkeys(Measurement.__dataclass_fields__, 1.0)
    unclear = Unclear.FEW_PROCESSES if why else None
    return Measurement(**fields | {"speed": speed, "unclear": unclear, "why": why, "ratio": ratio})


@pytest.fixture
def timings():
    hung, slow, unclear = found(cases=("hung", "slow", "unclear")).cases
    hung = replace(hung, outputs=check(OutputStatus.HANG, "head", MESSAGE))
    slow = replace(slow, measurement=measurement(Speed.SLOWER, ratio=1.1))
    unclear = replace(unclear, measurement=measurement(Speed.UNCLEAR, WHY))
    ended = "measuring ended early: GPU 0 cannot be opened"
    left = (NotTimed(case="left", reason=ended),)
    return replace(found(), cases=(hung, slow, unclear), gpus=(gpu("GPU-1", stopped=ended),), not_timed=left)


def test_a_report_has_faults_slow_cases_and_those_without_a_verdict(timings, snapshot):
    assert markdown.render(large_run(4, 0), NOWHERE, timing_summary.of_results(timings)) == snapshot


def test_the_terminal_says_why(timings, snapshot):
    stream = io.StringIO()
    command.show(timings, Console(file=stream, width=200))
    assert "\n".join(line.rstrip() for line in stream.getvalue().splitlines()) == snapshot
