"""Why a side failed, without the source that its message quotes."""

from __future__ import annotations

import pytest

from irdiff.compare.reasons import MAX_REASON, reason
from irdiff.model import Failure, FailureKind

QUOTED = """\
Traceback (most recent call last):
  File "x.py", line 9, in visit
    raise ValueError("odd")
ValueError: odd

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
triton.compiler.errors.CompilationError: at 5:4:
def kernel(x_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    y = tl.load(x_ptr ^ offsets)
    tl.static_assert(BLOCK == 9)
    ^"""
MESSAGE = (
    "CompilationError: at 5:4: def kernel(x_ptr, n, BLOCK: tl.constexpr): offsets = tl.arange(0, BLOCK) "
    "y = tl.load(x_ptr ^ offsets) tl.static_assert(BLOCK == 9) ^"
)


def failure(message: str, stderr: str = "", kind: FailureKind = FailureKind.ERROR) -> Failure:
    return Failure(kind=kind, stage="ttir", message=message, signal=None, stderr=stderr)


def test_the_last_line_behind_the_quotation() -> None:
    told = failure(f"{MESSAGE} ValueError('odd')", f"{QUOTED}\nshapes differ:\nValueError('odd')\n")
    assert reason(told) == "CompilationError: ValueError('odd') (at 5:4)"


def test_without_one_the_line_that_the_mark_stands_under() -> None:
    assert reason(failure(MESSAGE, QUOTED)) == "CompilationError: tl.static_assert(BLOCK == 9) (at 5:4)"


def test_of_errors_within_errors_the_last() -> None:
    inner = QUOTED.replace("5:4", "1:1").replace("BLOCK == 9", "inner") + "\n"
    assert "BLOCK == 9" in reason(failure(MESSAGE, inner + QUOTED))


@pytest.mark.parametrize("stderr", ["", "killed", QUOTED.replace("^", "")])
def test_where_nothing_of_it_was_printed_the_message_says_what_follows_its_mark(stderr: str) -> None:
    told = failure(f"{MESSAGE} ValueError('odd')", stderr)
    assert reason(told) == "CompilationError: ValueError('odd') (at 5:4)"
    assert reason(failure(MESSAGE, stderr)) == MESSAGE[:MAX_REASON]


@pytest.mark.parametrize(
    "message", ["RuntimeError: not today", "PassManager::run failed", "no result after 60 s", "", "at 1:2: x"]
)
def test_other_messages_stay_as_they_are(message: str) -> None:
    assert reason(failure(message, QUOTED)) == message
    assert len(reason(failure("x" * 900))) == MAX_REASON


def test_a_crash_is_no_exception() -> None:
    assert reason(failure(MESSAGE, QUOTED, FailureKind.CRASH)) == MESSAGE[:MAX_REASON]
