"""The samples of a run folder, kept whole in `timing-samples.parquet`: one row a sample."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from irdiff.errors import RunFolderError

SAMPLES_FILE = "timing-samples.parquet"


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One row of the samples file."""

    gpu: str
    case: str
    process: int
    round: int
    position: int
    """The position of the arm within its round, whose order is random."""
    arm: str
    """`base`, `control` or `head`."""
    launches: int
    elapsed_us: float
    """The time of all launches of the sample together."""


_COLUMNS = ("gpu", "case", "process", "round", "position", "arm", "launches", "elapsed_us")


def write_samples(folder: Path, samples: Iterable[Sample], measured: Iterable[tuple[str, str]]) -> None:
    """Replaces the samples of the (case, GPU) pairs in `measured`; keeps all others.

    A case that was measured again and has no sample now (it faulted) must not keep its former ones.
    """
    path = folder / SAMPLES_FILE
    replaced = set(measured)
    kept = [row for row in read_samples(path) if (row.case, row.gpu) not in replaced] if path.exists() else []
    _write(path, [*kept, *samples])


def _write(path: Path, rows: Sequence[Sample]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({name: [getattr(row, name) for row in rows] for name in _COLUMNS})
    part = path.with_name(f".part-{path.name}")
    pq.write_table(table, part, compression="zstd")
    part.replace(path)


def read_samples(path: Path) -> list[Sample]:
    """Samples of a parquet file, or of a JSON file with a list of the same rows (for `--simulate`)."""
    try:
        if path.suffix == ".json":
            return [Sample(**row) for row in json.loads(path.read_text(encoding="utf-8"))]
        import pyarrow.parquet as pq

        table = pq.read_table(path, columns=list(_COLUMNS)).to_pydict()
        return [
            Sample(**dict(zip(_COLUMNS, row, strict=True)))
            for row in zip(*(table[n] for n in _COLUMNS), strict=True)
        ]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise RunFolderError(f"{path} does not hold samples: {error}") from error


def join_samples(target: Path, sources: Sequence[Path]) -> None:
    """Brings the samples of other folders into `target`; of the same case on the same GPU the last count.

    One file is copied as it is, so that only a host that joins several needs pyarrow.
    """
    folders = [folder for folder in (target, *sources) if (folder / SAMPLES_FILE).exists()]
    if not folders or folders == [target]:
        return
    if len(folders) == 1:
        shutil.copyfile(folders[0] / SAMPLES_FILE, target / SAMPLES_FILE)
        return
    rows: dict[tuple[str, str], list[Sample]] = {}
    try:
        for folder in folders:
            found: dict[tuple[str, str], list[Sample]] = {}
            for row in read_samples(folder / SAMPLES_FILE):
                found.setdefault((row.case, row.gpu), []).append(row)
            rows |= found
        _write(target / SAMPLES_FILE, [row for part in rows.values() for row in part])
    except ImportError as error:
        raise RunFolderError(
            "the samples of several runs cannot be joined without pyarrow", hint="pip install irdiff[timing]"
        ) from error
