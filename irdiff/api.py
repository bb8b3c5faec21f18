"""What `irdiff.compare` does: the same flow as the command line, for programs."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from irdiff import config as configuration
from irdiff import pipeline
from irdiff.model import EVERYTHING, Run
from irdiff.resolve import targets as known_targets
from irdiff.resolve.look import look
from irdiff.resolve.sides import SideOptions, resolve_sides
from irdiff.run import run_place, same_compiler


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
    folder = Path(out) if out else config.runs / run_name(base, head)
    run_place.prepare(folder)
    wanted = SideOptions(
        repo=None,
        corpus=Path(corpus) if corpus else None,
        triton=None,
        build=True,
        progress=lambda _text: None,  # programs have their own way of showing progress
    )
    options = replace(EVERYTHING, cases=tuple(cases))
    chosen = known_targets.select(targets, [config.shipped / "targets"])
    found = look(base, head, wanted, config)
    if found and found.edited.identical:
        return same_compiler.write(found, chosen, options, config, folder)
    asked = pipeline.Comparison(
        sides=resolve_sides(base, head, wanted, config),
        targets=chosen,
        options=options,
        command=("irdiff.compare", base, head, *(("--corpus", str(corpus)) if corpus else ())),
        edited=found.edited if found else None,
    )
    return pipeline.compare(asked, config, folder, lambda _step: None)


def run_name(base: str, head: str) -> str:
    """A name for a run folder: the time in UTC, then both sides."""
    stamp = datetime.datetime.now(datetime.UTC).strftime("%Y%m%d-%H%M%S-%f")
    words = (re.sub(r"[^A-Za-z0-9.]+", "-", spec.rsplit("/", 1)[-1]).strip("-") for spec in (base, head))
    return f"{stamp}-{'-'.join(words)}"[:120]
