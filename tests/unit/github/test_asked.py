"""Commands in comments: what is taken, what is not, and that the record cannot be made to say anything else."""

import pytest

from irdiff.errors import UsageError
from irdiff.github import asked
from irdiff.github.asked import Asked
from tests.unit.golden import golden

HEAD = "a" * 40


def of(base=None, tiers=None, targets=(), cases=()):
    return Asked(base=base, tiers=tiers, targets=targets, cases=cases)


MANY = "--tier=gate --tier core --target sm_90 --target gfx942 --case 'matmul/*:fp16-*@gfx9?2'"


@pytest.mark.parametrize(
    ("comment", "wanted"),
    [
        ("/irdiff compare", of()),
        ("/irdiff compare v3.9.0", of("v3.9.0")),
        ("  /irdiff  compare\ttriton==3.8.0 \r\nthank you", of("triton==3.8.0")),
        ("/irdiff compare main~2 --tier all", of("main~2", ())),
        (
            f"/irdiff compare {MANY}",
            of(None, ("gate", "core"), ("sm_90", "gfx942"), ("matmul/*:fp16-*@gfx9?2",)),
        ),
    ],
)
def test_a_command_is_read_and_recorded_for_one_commit(comment, wanted):
    assert asked.parse(comment) == wanted
    record = asked.record(wanted, HEAD)
    assert asked.read(f"<!-- irdiff:comment:asked -->\n{record}\nsomebody asked", HEAD) == wanted
    assert asked.read(record, "b" * 40) is None
    assert asked.parse(f"/irdiff {asked.in_words(wanted)}") == wanted


@pytest.mark.parametrize("comment", golden("comments")["refused"])
def test_anything_else_is_no_command(comment):
    with pytest.raises(UsageError):
        asked.parse(comment)


@pytest.mark.parametrize("words", ["compare x;id", "compare --target $(id)", "compare --tier other", "time"])
def test_a_record_is_checked_as_a_comment_is(words):
    with pytest.raises(UsageError):
        asked.read(f"<!-- irdiff:record {HEAD} {words} -->", HEAD)


@pytest.mark.parametrize(
    "text", [None, "", "<!-- irdiff:record {} -->", f"<!-- irdiff:record {HEAD} compare -->x<!-- a -->"[5:]]
)
def test_what_is_no_record_asks_for_nothing(text):
    assert asked.read(text, HEAD) is None
