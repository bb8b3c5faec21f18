"""`failure.json`: why a comparison, or a part of it, gave no run. It comes from an untrusted job, like a run:
it is read within bounds, and shown escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from irdiff.adapters import adapter
from irdiff.errors import RunFolderError
from irdiff.run import run_folder

FILE = "failure.json"
MAX_PARTS = 64
_MAX_BYTES = 1 << 20
_MAX_LINES = 30
_MAX_LINE = 400


@dataclass(frozen=True, kw_only=True)
class PartFailure:
    """A step whose exit code is not zero."""

    step: str
    """In words: `compare 2/4`."""
    code: int
    """124 if it ran out of time."""
    lines: tuple[str, ...]
    """The last lines of its output."""


@dataclass(frozen=True, kw_only=True)
class _FailureFile:
    schema: Literal["irdiff-failure/1"]
    parts: tuple[PartFailure, ...] = Field(max_length=MAX_PARTS)


def of_output(step: str, code: int, lines: Sequence[str]) -> PartFailure:
    """Keeps the end of the output, which has the reason."""
    kept = [line.rstrip()[:_MAX_LINE] for line in lines if line.strip()][-_MAX_LINES:]
    return PartFailure(step=step[:200], code=code, lines=tuple(kept))


def write(folder: Path, parts: Iterable[PartFailure]) -> None:
    content = _FailureFile(schema="irdiff-failure/1", parts=tuple(parts)[:MAX_PARTS])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / FILE).write_bytes(adapter(_FailureFile).dump_json(content, indent=1) + b"\n")


def load(folder: Path) -> tuple[PartFailure, ...]:
    """Returns nothing if the folder has no failure. Raises RunFolderError for a damaged file."""
    if not folder.is_dir() or not (folder / FILE).exists():
        return ()
    content = run_folder.read_file(folder, (FILE,), _MAX_BYTES)
    try:
        return adapter(_FailureFile).validate_json(content, strict=True).parts
    except ValidationError as error:
        raise RunFolderError(
            f"{folder / FILE} does not describe a failure: {run_folder.first_mistake(error)}",
            hint="read it with the irdiff that wrote it",
        ) from error


NOTHING_KEPT = PartFailure(step="the comparison", code=1, lines=("no job left a result",))


def in_words(part: PartFailure) -> str:
    """`compare 2/4 ran out of time`, `toolchains ended with code 3`."""
    return f"{part.step} ran out of time" if part.code == 124 else f"{part.step} ended with code {part.code}"
