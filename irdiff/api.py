"""Implements `irdiff.compare`, with the same flow as the command line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from irdiff import config as configuration
from irdiff import pipeline
from irdiff.comparison import Request, resolved
from irdiff.model import DEFAULT_OPTIONS, Run
from irdiff.resolve import targets as known_targets
from irdiff.resolve.sides import SideOptions
from irdiff.run import run_place


def compare(
    base: str,
    head: str,
    *,
    targets: Sequence[str],
    cases: Sequence[str],
    corpus: str | Path | None,
    out: str | Path | None,
) -> Run:
    """See `irdiff.compare`."""
    config = configuration.load()
    place = Path(out) if out else None
    run_place.prepare(place or config.runs / "new")
    given = SideOptions(
        repo=None,
        corpus=Path(corpus) if corpus else None,
        triton=None,
        build=True,
    )
    words = Request(
        base=base,
        head=head,
        sides=given,
        targets=known_targets.select(targets, [config.shipped / "targets"]),
        options=replace(DEFAULT_OPTIONS, cases=tuple(cases)),
        command=("irdiff.compare", base, head, *(("--corpus", str(corpus)) if corpus else ())),
    )
    asked = resolved(words, config, lambda _: None)
    return pipeline.compare(asked, config, place, lambda _step: None)[0]
