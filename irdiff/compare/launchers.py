"""What a run must say of launchers, which it does not compare. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def notes(base: Mapping[str, str], head: Mapping[str, str], backends: Iterable[str]) -> tuple[str, ...]:
    """One note for each backend whose launcher differs; `base` and `head` hold a digest by backend.

    The launcher is what passes a kernel its arguments: `driver.py`, `driver.c`. It is part of no artifact.
    """
    return tuple(
        f"the launcher of {backend} (driver.py, driver.c) differs between base and head: what it does at a "
        "launch, the filling of TMA descriptors included, was not compared"
        for backend in dict.fromkeys(backends)
        if base.get(backend) != head.get(backend)
    )
