"""A compiler equals itself: the quick part of `python -m tests.programs.false_alarms`."""

import pytest

from tests.programs import false_alarms

QUICK = ("elementwise/vector_add", "matmul/pointer:fp16-4096", "language/features", "language/inline_asm")


def test_the_newest_release(tmp_path, cache):
    counts, alarms = false_alarms.run("3.9.0", QUICK, (), tmp_path, cache)
    assert not alarms
    assert counts["cases"] >= 40


@pytest.mark.wide
@pytest.mark.parametrize(
    ("release", "cases"),
    [("3.5.1", ()), ("3.7.1", ()), ("3.9.0", ("normalization/softmax", "language/loops"))],
)
def test_more_releases_and_cases(tmp_path, cache, release, cases):
    _, alarms = false_alarms.run(release, cases, () if cases else ("gate",), tmp_path, cache)
    assert not alarms
