"""What many cases have alike is told once."""

from __future__ import annotations

from typing import Any

from irdiff.model import Case, Verdict
from irdiff.report import error_clusters


def broken(build: Any, number: int, error: str | None) -> Case:
    made: Case = build.case(f"a/x:{number}@sm_90", Verdict.BROKEN, error=error)
    return made


def test_one_error_of_many_cases(build: Any) -> None:
    rows = [
        broken(build, 0, "odd"),
        *(broken(build, n, "head: no room") for n in range(1, 4)),
        broken(build, 4, None),
    ]
    found = error_clusters.errors(rows)
    assert [(row.words, row.names) for row in found] == [
        ("head: no room", "a/x:1@sm_90 and 2 more"),
        ("odd", "a/x:0@sm_90"),
        ("no message", "a/x:4@sm_90"),
    ]


def test_what_differs_between_them_is_left_open(build: Any) -> None:
    (row,) = error_clusters.errors(
        broken(build, n, f"needs {n} bytes of 'k{n}' in /tmp/{n}") for n in range(2)
    )
    assert row.words == "needs … bytes of … in …"
    assert error_clusters.errors([broken(build, 1, "needs 1 byte")])[0].words == "needs 1 byte"


def test_nondeterminism_has_a_direction(build: Any) -> None:
    def case(name: str, *sides: str) -> Case:
        made: Case = build.case(f"a/x:{name}@sm_90", Verdict.CHANGED, nondeterministic=sides)
        return made

    rows = [case("none"), case("base", "base"), case("both", "base", "head"), case("head", "head")]
    assert [error_clusters.unstable_words(row) for row in rows] == [
        "",
        "base disagrees with itself, head does not",
        "both sides disagree with themselves",
        "head disagrees with itself, base does not",
    ]
    found = error_clusters.unstable(rows)
    assert [cases[0].id for _, cases in found] == ["a/x:both@sm_90", "a/x:head@sm_90", "a/x:base@sm_90"]
    assert error_clusters.unstable_counts(rows) == [
        "2 nondeterministic at head",
        "1 nondeterministic at base alone",
    ]
    assert error_clusters.unstable_counts(rows[:1]) == []
