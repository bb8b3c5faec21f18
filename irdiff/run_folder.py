"""A run folder: `run.json`, and the artifacts that its reports and timings need, by digest.

    run.json             the model's `Run`, authoritative; every report is rendered from it
    artifacts/ab/cdef…   zstd-compressed, named by the SHA-256 of the content
    timing.json          added by `irdiff time`

It can be zipped, moved and read elsewhere. A folder may come from an attacker (a pull request's job), so
reading takes nothing on trust: sizes are bounded, the schema is checked, digests are verified, links
are not followed and no path of the folder's making is used.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import zstandard
from pydantic import TypeAdapter, ValidationError

from irdiff.errors import RunFolderError, StoreError
from irdiff.model import SCHEMA, Run
from irdiff.store import Store, sha256

MAX_RUN_JSON_BYTES = 256 << 20
MAX_ARTIFACT_BYTES = 256 << 20
_DIGEST = re.compile(r"[0-9a-f]{64}")
_adapter = TypeAdapter(Run)


def write(folder: Path, run: Run, store: Store, digests: Iterable[str]) -> None:
    """Writes a whole run folder, or nothing. Raises StoreError where it cannot."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".part-"))
        for digest in sorted(set(digests)):
            _copy(store.object_path(digest), part / "artifacts" / digest[:2] / digest[2:])
        (part / "run.json").write_bytes(dump(run))
        part.chmod(0o755)
        if folder.exists():
            shutil.rmtree(folder)
        part.replace(folder)
    except OSError as error:
        raise StoreError(
            f"the run folder {folder} cannot be written: {error.strerror or error}",
            hint="name another folder with --out DIR",
        ) from error


def _copy(source: Path, destination: Path) -> None:
    destination.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, destination)
    except OSError:
        shutil.copyfile(source, destination)


def dump(run: Run) -> bytes:
    """`run.json`, the same bytes for the same run."""
    rows = _adapter.dump_python(run, mode="json")
    return (json.dumps(rows, indent=1, sort_keys=True, ensure_ascii=True) + "\n").encode()


def json_schema() -> dict[str, Any]:
    """The JSON Schema of `run.json`."""
    return _adapter.json_schema()


def load(folder: Path) -> Run:
    """The run of a folder. Raises RunFolderError for anything but a whole run of this schema."""
    path = folder / "run.json" if folder.is_dir() else folder
    content = _read_bounded(path, MAX_RUN_JSON_BYTES)
    try:
        rows = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise RunFolderError(f"{path} is not JSON: {error}", hint="run `irdiff compare` again") from error
    schema = rows.get("schema") if isinstance(rows, dict) else None
    if schema != SCHEMA:
        raise RunFolderError(
            f"{path} has schema {schema!r}, this irdiff reads {SCHEMA!r}",
            hint="read it with the irdiff that wrote it, or compare again",
        )
    try:
        return _adapter.validate_json(content, strict=False)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))[:200]
        raise RunFolderError(f"{path} is not a valid run: {where}: {first['msg']}") from error


def artifact(folder: Path, digest: str) -> bytes | None:
    """The content of an artifact that the run folder holds, verified; None where it does not hold it."""
    if not _DIGEST.fullmatch(digest):
        raise RunFolderError(f"{digest[:80]!r} is not a digest")
    path = folder / "artifacts" / digest[:2] / digest[2:]
    if not path.exists():
        return None
    packed = _read_bounded(path, MAX_ARTIFACT_BYTES)
    try:
        content = zstandard.ZstdDecompressor().decompress(packed, max_output_size=MAX_ARTIFACT_BYTES)
    except zstandard.ZstdError as error:
        raise RunFolderError(f"artifact {digest} of {folder} is damaged: {error}") from error
    if len(content) > MAX_ARTIFACT_BYTES or sha256(content) != digest:
        raise RunFolderError(f"artifact {digest} of {folder} does not have the content of its name")
    return content


def _read_bounded(path: Path, limit_bytes: int) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise RunFolderError(f"{path} is not a plain file")
            if status.st_size > limit_bytes:
                raise RunFolderError(f"{path} has {status.st_size} bytes; at most {limit_bytes} are read")
            return file.read(limit_bytes + 1)
    except OSError as error:
        raise RunFolderError(
            f"{path} cannot be read: {error.strerror}", hint="give the folder that `irdiff compare` wrote"
        ) from error
