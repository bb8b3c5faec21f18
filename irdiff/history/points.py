"""From what a user writes for a backfill to the versions it means, the oldest first.

    triton==3.2.0..3.9.0    every release between the two that the package index has for this Python
    triton==3.8.0           one of them
    v1.0..main              the commits of a repository on the first-parent line between two revisions

Which versions an index has is asked of uv, one after another: it knows the index that is configured, its
credentials and which wheels fit, and each answer leaves out those before.
"""

from __future__ import annotations

import datetime
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from irdiff.config import Config
from irdiff.errors import ToolchainError, UsageError
from irdiff.history import versions
from irdiff.history.backfill import Point
from irdiff.resolve.toolchains import environments, repository

_RANGE = re.compile(r"triton==(?P<low>[^.][^,]*?)\.\.(?P<high>[^,]+)")
_ONE = re.compile(r"triton==([^,]+)")
_NO_MORE = re.compile(r"(?i)no solution found|no version|unsatisfiable|no matching")
_MOST = 400
"""Versions of one range: a year of nights."""

Ask = Callable[[str], str | None]
"""The newest version that meets a requirement; None where there is none."""


def with_index(config: Config, index: str | None) -> Config:
    """A configuration whose packages come from an index, nightlies among them."""
    if index is None:
        return config
    more = {"UV_DEFAULT_INDEX": index, "UV_INDEX_URL": index, "UV_PRERELEASE": "allow"}
    return replace(config, tool_environment={**config.tool_environment, **more})


def of_specs(specs: Sequence[str], every_days: int, repo: Path | None, config: Config) -> list[Point]:
    """The points of all specs together. Raises UsageError, ToolchainError."""
    found = [point for spec in specs for point in _of_spec(spec, every_days, repo, config)]
    unique = {point.name: point for point in found}
    series = {point.series for point in unique.values()}
    if len(series) > 1:
        raise UsageError(
            f"these are of several series, which have no common order: {', '.join(sorted(series))}",
            hint="backfill one after another, into the same file",
        )
    return sorted(unique.values(), key=lambda point: point.sort_key)


def _of_spec(spec: str, every_days: int, repo: Path | None, config: Config) -> list[Point]:
    if found := _RANGE.fullmatch(spec):
        low, high = found["low"], found["high"]
        return thinned([release(text) for text in between(low, high, _asked_of_uv(config))], every_days)
    if found := _ONE.fullmatch(spec):
        return [release(found[1])]
    if ".." in spec and not spec.startswith(("wheel:", "python:")):
        return thinned(_commits(spec, repo, config), every_days)
    raise UsageError(
        f"{spec!r} is no range of versions",
        hint="write it as triton==3.2.0..3.9.0, triton==3.9.0 or REV..REV",
    )


def release(version: str) -> Point:
    day = versions.date_of(version)
    series = versions.NIGHTLIES if day else versions.RELEASES
    return Point(
        spec=f"triton=={version}",
        name=f"triton=={version}",
        series=series,
        sort_key=f"{day} {versions.sort_key(version)}" if day else versions.sort_key(version),
        label=version,
        day=day,
    )


def between(low: str, high: str, ask: Ask) -> list[str]:
    """The versions from `low` to `high`, the oldest first."""
    found: list[str] = []
    while len(found) < _MOST:
        without = "".join(f",!={version}" for version in found)
        version = ask(f"triton>={low},<={high}{without}")
        if version is None:
            break
        found.append(version)
    if not found:
        raise ToolchainError(
            f"the package index has no Triton from {low} to {high} for this Python",
            hint="name another index with --index URL, or single versions: triton==3.8.0 triton==3.9.0",
        )
    return found[::-1]


def _asked_of_uv(config: Config) -> Ask:
    def ask(requirement: str) -> str | None:
        with tempfile.TemporaryDirectory(prefix="irdiff-versions-") as name:
            folder = Path(name)
            (folder / "wanted.in").write_text(f"{requirement}\n", encoding="utf-8")
            words: list[str | Path] = [
                "pip",
                "compile",
                "--no-deps",
                "--no-header",
                "--no-annotate",
                "--python",
            ]
            words += [sys.executable, folder / "wanted.in", "--output-file", folder / "found.txt"]
            try:
                environments.uv(words, folder / "uv.log", config)
            except ToolchainError as error:
                if _NO_MORE.search(error.what):
                    return None
                raise
            text = (folder / "found.txt").read_text(encoding="utf-8")
        answer = re.search(r"^triton==(\S+)", text, re.MULTILINE)
        return answer[1] if answer else None

    return ask


def _commits(spec: str, repo: Path | None, config: Config) -> list[Point]:
    low, _, high = spec.partition("..")
    store = repository.open_store(repo or Path.cwd(), config)
    first, last = repository.commit_of(store, low), repository.commit_of(store, high or "HEAD")
    words = ("log", "--first-parent", "--reverse", "--format=%H %ct")
    said = store.git(*words, last, "--not", f"{first}^@").decode()
    rows = [line.split() for line in said.splitlines() if line]
    if not rows:
        raise UsageError(f"{spec}: there is no commit between the two", hint=f"is {low} before {high}?")
    return [_commit(commit, int(moment), place) for place, (commit, moment) in enumerate(rows)]


def _commit(commit: str, moment_s: int, place: int) -> Point:
    day = datetime.datetime.fromtimestamp(moment_s, datetime.UTC).date().isoformat()
    return Point(
        spec=commit,
        name=commit[:10],
        series=versions.COMMITS,
        sort_key=f"{day} {moment_s:012d} {place:06d}",
        label=commit[:10],
        day=day,
    )


def thinned(points: Sequence[Point], every_days: int) -> list[Point]:
    """The last point of each span of so many days, and the first and last of all; all of them for 0."""
    return list(_thinned(points, every_days)) if every_days else list(points)


def _thinned(points: Sequence[Point], every_days: int) -> Iterator[Point]:
    undated = [point.label for point in points if point.day is None]
    if undated:
        raise UsageError(
            f"{undated[0]} names no day", hint="leave --every out: each version counts by itself"
        )
    spans = [datetime.date.fromisoformat(point.day or "").toordinal() // every_days for point in points]
    for place, point in enumerate(points):
        if place in (0, len(points) - 1) or spans[place] != spans[place + 1]:
            yield point
