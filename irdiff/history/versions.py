"""Versions: how a side of a run is named, which series it belongs to, and how a series is ordered. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from irdiff.model import Revision, Run, Sides

RELEASES, NIGHTLIES, COMMITS, OTHERS = "releases", "nightlies", "commits", "others"
_RELEASE = re.compile(r"triton==(.+)")
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
    release = _RELEASE.fullmatch(name)
    if release:
        day = date_of(release[1])
        series, label = NIGHTLIES if day else RELEASES, release[1]
        key = " ".join(filter(None, (day, sort_key(label))))
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
