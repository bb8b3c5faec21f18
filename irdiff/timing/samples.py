"""The samples of a run folder, kept whole in `timing-samples.jsonl.zst`: a line of JSON a sample."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import zstandard
from pydantic import ConfigDict, TypeAdapter, ValidationError

from irdiff.errors import RunFolderError

SAMPLES_FILE = "timing-samples.jsonl.zst"
_MAX_BYTES = 1 << 30
"""Of the lines: some five million samples, where a run of all shipped cases has a hundred thousand."""
_MAX_WINDOW_BYTES = 1 << 27
_CHUNK_BYTES = 1 << 10
"""A small one: a block of zstd's may say in four bytes that a byte repeats 128 KiB long."""
_LEVEL = 9


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

    __pydantic_config__ = ConfigDict(extra="forbid", allow_inf_nan=False)


_row, _rows = TypeAdapter(Sample), TypeAdapter(tuple[Sample, ...])


def write_samples(folder: Path, samples: Iterable[Sample], measured: Iterable[tuple[str, str]]) -> None:
    """Replaces the samples of the (case, GPU) pairs in `measured`; keeps all others.

    A case that was measured again and has no sample now (it faulted) must not keep its former ones.
    """
    replaced = set(measured)
    _write(folder, [*(row for row in _samples_of(folder) if (row.case, row.gpu) not in replaced), *samples])


def read_samples(path: Path) -> list[Sample]:
    """Samples of such a file, or of a JSON file with a list of the same rows (for `--simulate`)."""
    try:
        if path.suffix == ".json":
            return list(_rows.validate_json(path.read_bytes(), strict=True))
        return [_row.validate_json(line, strict=True) for line in _unpacked(path).splitlines()]
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))[:200]
        raise RunFolderError(f"{path} does not hold samples: {place}: {first['msg']}") from error
    except (OSError, ValueError, MemoryError, zstandard.ZstdError) as error:
        raise RunFolderError(f"{path} does not hold samples: {error}") from error


def join_samples(target: Path, sources: Sequence[Path]) -> None:
    """Brings the samples of other folders into `target`; of the same case on the same GPU the last count."""
    rows: dict[tuple[str, str], list[Sample]] = {}
    for folder in (target, *sources):
        found: dict[tuple[str, str], list[Sample]] = {}
        for row in _samples_of(folder):
            found.setdefault((row.case, row.gpu), []).append(row)
        rows |= found
    if rows:
        _write(target, [row for part in rows.values() for row in part])


def _samples_of(folder: Path) -> list[Sample]:
    path = folder / SAMPLES_FILE
    return read_samples(path) if path.exists() else []


def _write(folder: Path, rows: Sequence[Sample]) -> None:
    lines = b"".join(_row.dump_json(row) + b"\n" for row in rows)
    replace_file(folder / SAMPLES_FILE, zstandard.compress(lines, _LEVEL))


def replace_file(path: Path, content: bytes) -> None:
    """As a whole: whoever reads it meanwhile has the old one or the new one."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".part-", delete=False) as part:
        part.write(content)
    Path(part.name).chmod(0o644)
    Path(part.name).replace(path)


def _unpacked(path: Path) -> bytes:
    # in chunks: a frame's header may promise any size, and `decompress` would allocate it at once
    found = bytearray()
    codec = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW_BYTES).decompressobj()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            found += codec.decompress(chunk)
            if len(found) > _MAX_BYTES:
                raise ValueError(f"it unpacks to more than {_MAX_BYTES} bytes")
    if not codec.eof:
        raise ValueError("it is cut off")
    return bytes(found)
