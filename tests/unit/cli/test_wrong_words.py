"""Words of `irdiff compare` that are refused, with what to type, before anything is installed or compiled."""

import click
import pytest

from irdiff import config as configuration
from irdiff.cli.compare_command import compare_command
from irdiff.errors import UsageError
from tests.unit.typed import typed

SIDES = ("triton==3.8.0", "triton==3.9.0")


@pytest.mark.parametrize(
    ("words", "sentence", "hint"),
    [
        ((*SIDES, "--case", ""), "--case has an empty pattern", "leave out --case"),
        (("tritn==3.8.0", SIDES[1]), "neither a release of Triton nor a revision", "triton==3.9.0"),
        ((*SIDES, "--shard", "5/3"), "--shard '5/3' is not K/N", "--shard 3/8"),
        ((*SIDES, "--target", "sm_91"), "there is no target sm_91", "did you mean sm_90?"),
    ],
)
def test_a_mistake_is_named_with_what_to_type(words, sentence, hint, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError) as error:
        typed(compare_command, *words, "--cache", tmp_path / "cache")
    assert sentence in error.value.what
    assert hint in error.value.hint


@pytest.mark.parametrize(
    "words", [("--jobs", 0), ("--timeout", 0), ("--timeout", -1), ("--memory", 0), ("--targets-dir", "none")]
)
def test_numbers_and_folders_that_nothing_can_work_with_are_refused(words):
    with pytest.raises(click.BadParameter):
        typed(compare_command, *SIDES, *words)


def test_a_number_of_processes_that_is_none_is_refused(monkeypatch):
    monkeypatch.setenv("IRDIFF_JOBS", "abc")
    with pytest.raises(UsageError, match="the variable IRDIFF_JOBS is 'abc'"):
        configuration.load()
