"""Versions: how a side of a run is named, which series it belongs to, and how a series is ordered.

`of_specs` expands a user's specs for a backfill into versions, the oldest first:

    triton==3.2.0..3.9.0    every release between the two that the package index has for this Python
    triton==3.8.0           one of them
    v1.0..main              the commits of a repository on the first-parent line between two revisions

uv finds the versions of an index, one after another, each answer excluding those before: it knows the
configured index, its credentials and which wheels fit.
"""

from __future__ import annotations

import datetime
import re
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from packaging.version import InvalidVersion
from packaging.version import Version as PackagedVersion

from irdiff.config import Config
from irdiff.errors import ToolchainError, UsageError
from irdiff.model import Revision, Run, Sides
from irdiff.resolve import settings
from irdiff.resolve.sides import Side
from irdiff.resolve.toolchains import environments, repository

RELEASES, NIGHTLIES, COMMITS, OTHERS = "releases", "nightlies", "commits", "others"
_ONE = re.compile(r"triton==([^,]+)")
_COMMIT = re.compile(r"(?:^|\()([0-9a-f]{10})\)?$")
_DATE = re.compile(r"(?:dev|post|git|\D)(20\d\d)(\d\d)(\d\d)(?:\d{6})?(?=\D|$)")
_LAST = "~"
"""Sorts after every digit and letter."""


@dataclass(frozen=True, kw_only=True)
class Version:
    name: str
    """`triton==3.8.0`, a commit of the compiler or of the kernels, or else the side as a user types it, with
    digits of its digest.
    """
    series: str
    sort_key: str
    label: str
    """Its name on a page."""
    toolchain: str
    corpus: str
    """The digest of the kernels."""


@dataclass(frozen=True, kw_only=True)
class Point(Version):
    toolchain: str = ""
    corpus: str = ""
    """Empty until the version is resolved."""
    spec: str
    day: str | None
    """YYYY-MM-DD, if the version names one."""

    def version(self, side: Side) -> Version:
        return replace(self, toolchain=side.toolchain.digest, corpus=side.corpus.digest)


def of_run(run: Run) -> Sides[Version]:
    is_kernels = run.is_of_kernel_repository
    base = _version(run.base, f"{run.created} 0", is_kernels)
    return Sides(base=base, head=_version(run.head, f"{run.created} 1", is_kernels))


def _version(side: Revision, when: str, is_kernels: bool) -> Version:
    plain, chosen = settings.split(side.spec)
    match = _ONE.fullmatch(plain)
    if match and not chosen and not is_kernels:
        point = release(match[1])
        name, series, key, label = point.name, point.series, point.sort_key, point.label
    elif name := _of_commit(plain, side, is_kernels):
        name += settings.suffix(chosen)
        series, key, label = OTHERS if chosen else COMMITS, when, name.rpartition(" ")[2]
    else:  # the same words may mean another compiler tomorrow
        digits = side.digest[:10]
        name, label = f"{side.spec} {digits}", f"{Path(side.spec).name} {digits}"
        series, key = OTHERS, when
    return Version(
        name=name, series=series, sort_key=key, label=label, toolchain=side.digest, corpus=side.corpus
    )


def _of_commit(plain: str, side: Revision, is_kernels: bool) -> str:
    """Returns the name of a commit, of the compiler or of the kernels; empty if the side is neither."""
    commit = _COMMIT.search(plain)
    if not is_kernels:
        return commit[1] if commit else ""
    match = re.match(r"kernels of (?:.*\()?([0-9a-f]{10})\b", side.note)
    return match[1] if match else f"{commit[1] if commit else plain} kernels {side.corpus[:10]}"


def sort_key(version: str) -> str:
    """Returns a text that sorts as PEP 440 orders versions: dev before pre-release before release before
    post.
    """
    try:
        parsed = PackagedVersion(version)
    except InvalidVersion:
        return f" {version}"  # before all versions: it must never be the newest
    release = re.sub(r"(\.0+)+$", "", ".".join(f"{number:08d}" for number in parsed.release))
    dev = _LAST if parsed.dev is None else f"dev{parsed.dev:020d}"
    after = "" if parsed.post is None else f"post{parsed.post:020d}"
    before = _LAST
    if parsed.pre:
        before = "{}{:08d}".format(*parsed.pre)
    elif parsed.dev is not None and parsed.post is None:
        before = "!"  # of no pre-release: it sorts before all of them
    return f"{release} {before} {after} {dev} {parsed.local or ''}"


def date_of(version: str) -> str | None:
    """Returns YYYY-MM-DD of a nightly's version; None if it names no day."""
    match = _DATE.search(version)
    return "-".join(match.groups()[:3]) if match else None


_RANGE = re.compile(r"triton==(?P<low>[^.][^,]*?)\.\.(?P<high>[^,]+)")
_NO_MORE = re.compile(r"(?i)no solution found|no version|unsatisfiable|no matching")
_MOST = 400
"""A year of nights."""


def with_index(config: Config, index: str | None) -> Config:
    if index is None:
        return config
    more = {"UV_DEFAULT_INDEX": index, "UV_INDEX_URL": index, "UV_PRERELEASE": "allow"}
    return replace(config, tool_environment={**config.tool_environment, **more})


def of_specs(specs: Sequence[str], every_days: int, repo: Path | None, config: Config) -> list[Point]:
    """Raises UsageError, ToolchainError."""
    points = [point for spec in specs for point in _of_spec(spec, every_days, repo, config)]
    unique = {point.name: point for point in points}
    series = {point.series for point in unique.values()}
    if len(series) > 1:
        raise UsageError(
            f"these versions are of several series, which have no common order: {', '.join(sorted(series))}",
            hint="backfill one after another, into the same file",
        )
    return sorted(unique.values(), key=lambda point: point.sort_key)


def _of_spec(spec: str, every_days: int, repo: Path | None, config: Config) -> list[Point]:
    if match := _RANGE.fullmatch(spec):
        newest = partial(_newest_by_uv, config=config)
        return thinned([release(text) for text in between(match["low"], match["high"], newest)], every_days)
    if match := _ONE.fullmatch(spec):
        return [release(match[1])]
    if ".." in spec and not spec.startswith(("wheel:", "python:")):
        return thinned(_commits(spec, repo, config), every_days)
    raise UsageError(
        f"{spec!r} is no version or range of versions",
        hint="write it as triton==3.2.0..3.9.0, triton==3.9.0 or REV..REV",
    )


def release(version: str) -> Point:
    day = date_of(version)
    series = NIGHTLIES if day else RELEASES
    return Point(
        spec=f"triton=={version}",
        name=f"triton=={version}",
        series=series,
        sort_key=f"{day} {sort_key(version)}" if day else sort_key(version),
        label=version,
        day=day,
    )


def between(low: str, high: str, newest: Callable[[str], str | None]) -> list[str]:
    """Puts the oldest first; `newest` finds the newest for a requirement."""
    newer: list[str] = []
    while len(newer) < _MOST:
        without = "".join(f",!={version}" for version in newer)
        version = newest(f"triton>={low},<={high}{without}")
        if version is None:
            break
        newer.append(version)
    if not newer:
        raise ToolchainError(
            f"the package index has no Triton from {low} to {high} for this Python",
            hint="name another index with --index URL, or single versions: triton==3.8.0 triton==3.9.0",
        )
    return newer[::-1]


def _newest_by_uv(requirement: str, config: Config) -> str | None:
    with tempfile.TemporaryDirectory(prefix="irdiff-versions-") as name:
        folder = Path(name)
        (folder / "wanted.in").write_text(f"{requirement}\n", encoding="utf-8")
        options = ("--no-deps", "--no-header", "--no-annotate", "--python", sys.executable)
        files: list[str | Path] = [folder / "wanted.in", "--output-file", folder / "found.txt"]
        try:
            environments.uv(["pip", "compile", *options, *files], folder / "uv.log", config)
        except ToolchainError as error:
            if _NO_MORE.search(error.what):
                return None
            raise
        text = (folder / "found.txt").read_text(encoding="utf-8")
    answer = re.search(r"^triton==(\S+)", text, re.MULTILINE)
    return answer[1] if answer else None


def _commits(spec: str, repo: Path | None, config: Config) -> list[Point]:
    low, _, high = spec.partition("..")
    store = repository.open_store(repo or Path.cwd(), config)
    first, last = repository.commit_of(store, low), repository.commit_of(store, high or "HEAD")
    words = ("log", "--first-parent", "--reverse", "--format=%H %ct", last, "--not", f"{first}^@")
    commits = [line.split() for line in store.git(*words).decode().splitlines() if line]
    if not commits:
        raise UsageError(f"{spec}: there is no commit between the two", hint=f"is {low} before {high}?")
    return [_commit(commit, int(moment), place) for place, (commit, moment) in enumerate(commits)]


def _commit(commit: str, moment_s: int, place: int) -> Point:
    day = datetime.datetime.fromtimestamp(moment_s, datetime.UTC).date().isoformat()
    return Point(
        spec=commit,
        name=commit[:10],
        series=COMMITS,
        sort_key=f"{day} {moment_s:012d} {place:06d}",
        label=commit[:10],
        day=day,
    )


def thinned(points: Sequence[Point], every_days: int) -> list[Point]:
    """Returns the last point of each span of so many days, and the first and last of all; all of them
    for 0.
    """
    if not every_days:
        return list(points)
    undated = [point.label for point in points if point.day is None]
    if undated:
        raise UsageError(
            f"{undated[0]} has no date in its name", hint="leave --every out: each version counts by itself"
        )
    spans = [datetime.date.fromisoformat(point.day or "").toordinal() // every_days for point in points]
    last_of_span = dict(zip(spans, points, strict=True))
    return list(dict.fromkeys([*points[:1], *last_of_span.values()]))
