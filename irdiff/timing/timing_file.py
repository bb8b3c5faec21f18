"""`timing.json` in a run folder: read, written, and joined from several folders."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from irdiff.errors import RunFolderError
from irdiff.timing.results import MAX_TIMING_BYTES, SCHEMA, TIMING_FILE, TimingResults, merge
from irdiff.timing.samples import join_samples, replace_file

_any, _adapter = TypeAdapter(dict[str, object]), TypeAdapter(TimingResults)


def dump(results: TimingResults) -> bytes:
    rows = _adapter.dump_python(results, mode="json")
    return (json.dumps(rows, indent=1, sort_keys=True, ensure_ascii=True) + "\n").encode()


def load(folder: Path) -> TimingResults | None:
    """The timings of a run folder, or None. Raises RunFolderError for what is not of this schema."""
    path = folder / TIMING_FILE
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RunFolderError(f"{path} cannot be read: {error.strerror}") from error
    with os.fdopen(descriptor, "rb") as file:
        content = file.read(MAX_TIMING_BYTES + 1)
    if len(content) > MAX_TIMING_BYTES:
        raise RunFolderError(f"{path} has more than {MAX_TIMING_BYTES} bytes")
    return parse(content, str(path))


def parse(content: bytes, where: str) -> TimingResults:
    """The timings of a file's content. Raises RunFolderError for another schema."""
    try:
        schema = _any.validate_json(content).get("schema")
        if schema != SCHEMA:
            raise RunFolderError(f"{where} has schema {str(schema)[:80]!r}, this irdiff reads {SCHEMA!r}")
        return _adapter.validate_json(content)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))[:200]
        raise RunFolderError(f"{where} is not a valid timing file: {place}: {first['msg']}") from error


def write(folder: Path, results: TimingResults) -> TimingResults:
    """Adds the results to those that the folder already has; returns both as `merge` joins them."""
    before = load(folder)
    merged = merge([before, results]) if before else results
    replace_file(folder / TIMING_FILE, dump(merged))
    return merged


def join(target: Path, sources: Sequence[Path]) -> TimingResults | None:
    """Brings the timings of other copies of a run folder into `target`: the timing part of `irdiff merge`.

    None where no folder has timings. Raises RunFolderError where a file is not what it says. That the
    folders are of the same run is the caller's to check.
    """
    parts = [part for folder in (target, *sources) if (part := load(folder)) is not None]
    if not parts:
        return None
    join_samples(target, sources)
    merged = merge(parts)
    replace_file(target / TIMING_FILE, dump(merged))
    return merged
