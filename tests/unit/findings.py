"""Findings as they are written, for tests that read better so."""

from collections.abc import Iterable

from irdiff.findings import Finding


def findings(*written: str) -> tuple[Finding, ...]:
    return tuple(map(Finding.parse, written))


def told(found: Iterable[Finding]) -> tuple[str, ...]:
    return tuple(map(str, found))
