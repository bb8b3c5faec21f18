"""Findings as they are written, for tests that read better so."""

from irdiff.findings import Finding


def findings(*written):
    return tuple(map(Finding.parse, written))


def told(found):
    return tuple(map(str, found))
