"""Versions: how a side of a run is named, which series it belongs to, and how a series is ordered.

From what a user writes for a backfill `of_specs` makes the versions that it means, the oldest first:

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
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from irdiff.config import Config
from irdiff.errors import ToolchainError, UsageError
from irdiff.model import Revision, Run, Sides
from irdiff.resolve.sides import Side
from irdiff.resolve.toolchains import environments, repository

RELEASES, NIGHTLIES, COMMITS, OTHERS = "releases", "nightlies", "commits", "others"
_ONE = re.compile(r"triton==([^,]+)")
_COMMIT = re.compile(r"(?:^|\()([0-9a-f]{10})\)?$")
# PEP 440, without epochs: release, pre-release, post-release, development release, local part
_PARTS = re.compile(
    r"v?(\d+(?:\.\d+)*)[-_.]?(?:(a|b|c|rc|alpha|beta|pre)[-_.]?(\d*))?"
    r"(?:[-_.]?(?:post|rev|r)[-_.]?(\d+))?(?:[-_.]?dev[-_.]?(\d*))?(?:\+([a-z0-9._-]+))?$",
    re.IGNORECASE,
)
_DATE = re.compile(r"(?:dev|post|git|\D)(20\d\d)(\d\d)(\d\d)(?:\d{6})?(?=\D|$)")
_LAST = "~"
"""Sorts after every digit and letter."""


@dataclass(frozen=True, kw_only=True)
class Version:
    """One point of every line."""

    name: str
    """What a user types to get it: `triton==3.8.0`, a commit of the compiler or of the kernels."""
    series: str
    sort_key: str
    label: str
    """What a page shows."""
    toolchain: str
    """The digest of the toolchain."""
    corpus: str
    """The digest of the kernels."""


@dataclass(frozen=True, kw_only=True)
class Point(Version):
    """One version that is asked for."""

    toolchain: str = ""
    corpus: str = ""
    """Empty until the version is at hand."""
    spec: str
    day: str | None
    """YYYY-MM-DD, where the version names one."""

    def version(self, side: Side) -> Version:
        return replace(self, toolchain=side.toolchain.digest, corpus=side.corpus.digest)


def of_run(run: Run) -> Sides[Version]:
    """Both sides of a run."""
    is_kernels = run.base.digest == run.head.digest and run.base.corpus != run.head.corpus
    base = _version(run.base, f"{run.created} 0", is_kernels)
    return Sides(base=base, head=_version(run.head, f"{run.created} 1", is_kernels))


def _version(side: Revision, when: str, is_kernels: bool) -> Version:
    name = of_spec(side.spec)
    if is_kernels:
        found = re.match(r"kernels of (?:.*\()?([0-9a-f]{10})\b", side.note)
        name = found[1] if found else f"{name} kernels {side.corpus[:10]}"
    if found := _ONE.fullmatch(name):
        point = release(found[1])
        series, key, label = point.series, point.sort_key, point.label
    else:
        series = COMMITS if is_kernels or _COMMIT.search(name) else OTHERS
        key, label = when, name.rpartition(" ")[2]
    return Version(
        name=name, series=series, sort_key=key, label=label, toolchain=side.digest, corpus=side.corpus
    )


def of_spec(spec: str) -> str:
    """The name of the version that a side's spec stands for: a commit by its hash, however it was written."""
    commit = _COMMIT.search(spec)
    return commit[1] if commit else spec


def sort_key(version: str) -> str:
    """A text that sorts as PEP 440 orders versions: dev before pre-release before release before post."""
    found = _PARTS.fullmatch(version)
    if not found:
        return f"{_LAST}{version}"
    release, kind, number, post, development, local = found.groups()
    numbers = [int(part) for part in release.split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    name = {"alpha": "a", "beta": "b", "c": "rc", "pre": "rc"}.get((kind or "").lower(), (kind or "").lower())
    dev = f"dev{int(development or 0):020d}" if development is not None else _LAST
    before = f"{name}{int(number or 0):08d}" if name else ("" if development and post is None else _LAST)
    after = f"post{int(post):020d}" if post is not None else ""
    dotted = ".".join(f"{number:08d}" for number in numbers)
    return f"{dotted} {before or '!'} {after} {dev} {(local or '').lower()}"


def date_of(version: str) -> str | None:
    """The day that a nightly's version names, as YYYY-MM-DD; None where it names none."""
    found = _DATE.search(version)
    return "-".join(found.groups()[:3]) if found else None


_RANGE = re.compile(r"triton==(?P<low>[^.][^,]*?)\.\.(?P<high>[^,]+)")
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
        series=COMMITS,
        sort_key=f"{day} {moment_s:012d} {place:06d}",
        label=commit[:10],
        day=day,
    )


def thinned(points: Sequence[Point], every_days: int) -> list[Point]:
    """The last point of each span of so many days, and the first and last of all; all of them for 0."""
    if not every_days:
        return list(points)
    undated = [point.label for point in points if point.day is None]
    if undated:
        raise UsageError(
            f"{undated[0]} names no day", hint="leave --every out: each version counts by itself"
        )
    spans = [datetime.date.fromisoformat(point.day or "").toordinal() // every_days for point in points]
    last = len(points) - 1
    return [
        point for place, point in enumerate(points) if place in (0, last) or spans[place] != spans[place + 1]
    ]
