"""Which caches go: those of closed pull requests, then those unused longest."""

from irdiff.github import actions
from irdiff.github.actions import ActionsCache


def cache(number: int, ref: str, gigabytes: int, last_used: str) -> ActionsCache:
    return ActionsCache(
        number=number, ref=ref, key=f"irdiff-{number}", size_bytes=gigabytes << 30, last_used=last_used
    )


def test_what_is_removed():
    rows = [
        cache(1, "refs/pull/7/merge", 1, "2026-01-09"),
        cache(2, "refs/pull/8/merge", 1, "2026-01-08"),
        cache(3, "refs/heads/main", 5, "2026-01-07"),
        cache(4, "refs/heads/main", 3, "2026-01-01"),
        cache(5, "refs/heads/pull/7/merge", 1, "2026-01-06"),
    ]
    assert [actions.pull_request_of(row) for row in rows] == [7, 8, None, None, None]
    gone = actions.to_remove(rows, {7}, 8 << 30)
    assert [row.number for row in gone] == [1, 4]
    assert actions.to_remove(rows, set(), 100 << 30) == []
