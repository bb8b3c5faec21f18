from __future__ import annotations

import functools
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import zstandard
from pydantic import ValidationError

from irdiff.adapters import adapter
from irdiff.errors import RunFolderError
from irdiff.run import run_folder
from irdiff.store import write_whole
from irdiff.timing.results import MAX_TIMING_BYTES, SCHEMA, TIMING_FILE, Sample, TimingResults, merge

SAMPLES_FILE = "timing-samples.jsonl.zst"
_AGAIN = "read it with the irdiff that wrote it, or time the run again"
_MAX_SAMPLES_BYTES = 1 << 30
"""Unpacked: some five million samples. A run of all shipped cases has a hundred thousand."""
_LEVEL = 9


def dump(results: TimingResults) -> bytes:
    fields = adapter(TimingResults).dump_python(results, mode="json")
    return (json.dumps(fields, indent=1, sort_keys=True, ensure_ascii=True) + "\n").encode()


def load(folder: Path) -> TimingResults | None:
    """Returns None if the run has no timings. Raises RunFolderError for another schema."""
    path = folder / TIMING_FILE
    if not os.path.lexists(path):
        return None
    return parse(run_folder.read_file(folder, (TIMING_FILE,), MAX_TIMING_BYTES), str(path))


def parse(content: bytes, where: str) -> TimingResults:
    """Raises RunFolderError for another schema."""
    try:
        schema = adapter(dict[str, object]).validate_json(content).get("schema")
        if schema != SCHEMA:
            raise RunFolderError(
                f"{where} has schema {str(schema)[:80]!r}, this irdiff reads {SCHEMA!r}", hint=_AGAIN
            )
        return adapter(TimingResults).validate_json(content)
    except ValidationError as error:
        message = f"{where} is not a valid timing file: {run_folder.first_mistake(error)}"
        raise RunFolderError(message, hint=_AGAIN) from error


def write(folder: Path, results: TimingResults) -> TimingResults:
    """Returns the results merged with those that the folder already has."""
    before = load(folder)
    merged = merge(before, results) if before else results
    write_whole(folder / TIMING_FILE, dump(merged))
    return merged


def join(target: Path, sources: Sequence[Path]) -> TimingResults | None:
    """Merges the timings of other copies of a run folder into `target`, for `irdiff merge`.

    Returns None if no folder has timings. Raises RunFolderError if a file is damaged. The caller checks that
    the folders hold the same run.
    """
    parts = [part for folder in (target, *sources) if (part := load(folder)) is not None]
    if not parts:
        return None
    for folder in sources:
        if samples := _samples_of(folder):
            write_samples(target, samples, {(sample.case, sample.gpu) for sample in samples})
    merged = functools.reduce(merge, parts)
    write_whole(target / TIMING_FILE, dump(merged))
    return merged


def write_samples(folder: Path, samples: Iterable[Sample], measured: Iterable[tuple[str, str]]) -> None:
    """Keeps samples of other (case, GPU) pairs than `measured`. A case that was measured again and has no
    sample now (it faulted) must not keep its former ones.
    """
    replaced = set(measured)
    kept = [
        *(sample for sample in _samples_of(folder) if (sample.case, sample.gpu) not in replaced),
        *samples,
    ]
    lines = b"".join(adapter(Sample).dump_json(sample) + b"\n" for sample in kept)
    write_whole(folder / SAMPLES_FILE, zstandard.compress(lines, _LEVEL))


def read_samples(path: Path) -> list[Sample]:
    """Reads a samples file, or a JSON file with a list of samples (for `--simulate`)."""
    try:
        if path.suffix == ".json":
            return list(adapter(tuple[Sample, ...]).validate_json(path.read_bytes(), strict=True))
        lines = run_folder.unpacked(path.read_bytes(), _MAX_SAMPLES_BYTES, "it").splitlines()
        return [adapter(Sample).validate_json(line, strict=True) for line in lines]
    except ValidationError as error:
        raise RunFolderError(
            f"{path} does not hold samples: {run_folder.first_mistake(error)}", hint=_AGAIN
        ) from error
    except (OSError, ValueError, MemoryError, RunFolderError) as error:
        reason = error.what if isinstance(error, RunFolderError) else error
        raise RunFolderError(f"{path} does not hold samples: {reason}", hint=_AGAIN) from error


def _samples_of(folder: Path) -> list[Sample]:
    path = folder / SAMPLES_FILE
    return read_samples(path) if path.exists() else []
