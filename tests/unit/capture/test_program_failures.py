"""A program that ends early: its file, the error and the line in one sentence."""

import pytest

from irdiff.capture import program_failures
from irdiff.capture.program_failures import ProgramFailure
from irdiff.model import Sides, Verdict
from irdiff.report import headline
from tests.unit import runs

WORKER = """  File "/opt/irdiff/worker/run_program.py", line 27, in run
    run_as_main(*words)
  File "<frozen runpy>", line 88, in _run_code
"""
OWN = """  File "bench/run.py", line 2, in <module>
    from k import missing
"""
ERROR = "ImportError: cannot import name 'missing' from 'k' (k.py)"
START = "Traceback (most recent call last):\n"


def failure(message=ERROR, frames=OWN, workload="program/run"):
    stderr = f"{START}{WORKER}{frames}{message}\n"
    return runs.failed(stage="capture", message=f"EndedEarly: {message}", stderr=stderr).failure


@pytest.mark.parametrize(
    ("frames", "program", "reason", "place"),
    [
        (OWN, "bench/run.py", f"{ERROR}, line 2", ("bench/run.py", 2)),
        (
            f'{OWN}  File "k.py", line 7, in f\n    g()\n',
            "bench/run.py",
            f"{ERROR}, k.py line 7",
            ("k.py", 7),
        ),
        ("", "run", ERROR, ("", 0)),  # it ended in a package
    ],
)
def test_the_program_the_error_and_the_line(frames, program, reason, place):
    path, line = place
    assert program_failures.of(failure(frames=frames), "program/run") == ProgramFailure(
        program=program, reason=reason, path=path, line=line
    )


def test_the_traceback_is_that_of_the_program():
    assert program_failures.own_traceback(failure().stderr) == [START.rstrip(), *OWN.splitlines(), ERROR]


def case(verdict, base, head):
    return runs.case("program/run:run/copy@sm_90", verdict, failures=Sides(base=base, head=head))


def test_the_headline_says_it_and_that_nothing_was_compared():
    run = runs.run(case(Verdict.BROKEN, None, failure()))
    assert headline.of(run).startswith(
        f"bench/run.py fails at head on sm_90: {ERROR}, line 2. No kernel was compared."
    )


def test_a_long_error_is_cut_and_not_the_answer():
    """Of the kernels that it launched before, the headline says whether they changed."""
    long = failure(message="RuntimeError: " + "the driver is too old for what was asked. " * 20)
    changed = runs.case("program/run:run/add@sm_90", Verdict.CHANGED)
    first = headline.of(runs.run(case(Verdict.FAILING, long, long), changed))
    assert "fails on both sides" in first
    assert "1 of 1 compared case changed" in first
    assert len(first) < 400
