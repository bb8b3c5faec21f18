"""A run folder: `run.json`, and the artifacts that its reports and timings need, by digest.

    run.json             the model's `Run`, authoritative; every report is rendered from it
    artifacts/ab/cdef…   zstd-compressed, named by the SHA-256 of the content
    timing.json          added by `irdiff time`

It can be zipped, moved and read elsewhere. A folder may come from an attacker (a pull request's job), so
nothing is trusted: sizes are bounded, the schema is checked, digests are verified, links are not followed and
no path from the folder is used. `run_checks` checks what a schema cannot; `run_archive` opens a zipped run.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import zstandard
from pydantic import ValidationError
from pydantic_core import from_json, to_json

from irdiff.adapters import adapter
from irdiff.errors import RunFolderError, StoreError
from irdiff.model import SCHEMA, Case, Launch, Run
from irdiff.run import run_checks, run_place
from irdiff.store import Store, sha256

MAX_RUN_JSON_BYTES = 512 << 20
MAX_ARTIFACT_BYTES = 256 << 20
_AGAIN = "copy the run folder again, or compare again"
_MAX_WINDOW_BYTES = 128 << 20
_CHUNK_BYTES = 1 << 10
_LINK_ERRORS = frozenset({errno.ELOOP, errno.ENOTDIR, errno.EMLINK})
_LONG: dict[str, type] = {"launches": dict, "cases": list}
_MAX_ROW_VALUES, _MAX_HEAD_VALUES = 100_000, 2_000_000
"""Values in the JSON of one launch or case, and in everything else."""


def write(folder: Path, run: Run, store: Store, digests: Iterable[str]) -> None:
    """Writes a whole run folder, or leaves everything as it was.

    Raises StoreError if it cannot, UsageError if `folder` holds anything but a run, and RunFolderError for a
    run that contradicts itself or exceeds the bounds of a reader.
    """
    run_checks.check_run(run, folder)
    try:
        with run_place.replaced(folder) as part:
            (part / "artifacts").mkdir()
            for digest in sorted(set(digests)):
                _copy_artifact(store, digest, part / "artifacts" / digest[:2] / digest[2:])
            with (part / "run.json").open("wb") as file:
                file.writelines(stored(run))
    except OSError as error:
        raise StoreError(
            f"the run folder {folder} cannot be written: {error.strerror or error}",
            hint="what was compiled is in the store: free space, or name another folder with --out DIR, and "
            "the same command takes it from there",
        ) from error


def _copy_artifact(store: Store, digest: str, destination: Path) -> None:
    try:
        store.copy_object(digest, destination)
    except FileNotFoundError as error:
        if store.object_path(digest).exists():
            raise
        raise StoreError(
            f"the run cannot be written: the store {store.root} lacks the artifact {digest[:12]}. irdiff "
            "removed it because it was damaged, or another process removed it",
            hint="run the same command again: irdiff compiles what the store lacks",
        ) from error


def dump(run: Run) -> bytes:
    """Returns the same bytes for the same run."""
    return b"".join(stored(run))


def stored(run: Run) -> Iterator[bytes]:
    """Yields `run.json` in parts: the short entries, then launches and cases, each on a line of its own."""
    short = adapter(Run).dump_python(replace(run, schema=SCHEMA, launches={}, cases=()), mode="json")
    lines = [f'"{name}": {json.dumps(value)}' for name, value in short.items() if name not in _LONG]
    yield ("{\n " + ",\n ".join(lines) + ',\n "launches": {').encode()
    for number, (key, launch) in enumerate(run.launches.items()):
        yield f"{',' if number else ''}\n  {json.dumps(key)}: ".encode() + adapter(Launch).dump_json(launch)
    yield b'\n },\n "cases": ['
    for number, case in enumerate(run.cases):
        yield (b",\n  " if number else b"\n  ") + adapter(Case).dump_json(case)
    yield b"\n ]\n}\n"


def json_schema() -> dict[str, Any]:
    return adapter(Run).json_schema()


def load(folder: Path) -> Run:
    """Takes a folder or its `run.json`. Raises RunFolderError for anything but a whole, consistent run of a
    known schema.
    """
    root, name = (folder, "run.json") if folder.is_dir() else (folder.parent, folder.name)
    path = root / name
    content = read_file(root, (name,), MAX_RUN_JSON_BYTES)
    run_checks.check_values(content, path)
    try:
        document = from_json(content)
        if not isinstance(document, dict):
            raise ValueError("it is not a JSON object")
    except ValueError as error:
        hint = "run `irdiff compare` again"
        raise RunFolderError(f"{path} is not a run: {str(error)[:200]!a}", hint=hint) from error
    schema = document.get("schema")
    if schema != SCHEMA:  # of another version, which is not damaged
        raise RunFolderError(
            f"{path} has schema {str(schema)[:80]!a}, this irdiff reads {SCHEMA!r}",
            hint="read it with the irdiff that wrote it, or compare again",
        )
    run_checks.check_document(document, path)
    run = _read(document, path)
    run_checks.check_run(run, path)
    return run


def _read(document: dict[str, Any], path: Path) -> Run:
    """Validates launches and cases one by one, up to the first invalid one: pydantic collects every error of
    a value, at a kilobyte each.
    """

    def read(kind: type, where: str, value: object, limit: int = _MAX_ROW_VALUES) -> Any:
        text = to_json(value, inf_nan_mode="constants")
        if text.count(b",") + text.count(b"[") + text.count(b"{") > limit:
            raise RunFolderError(
                f"{path} is not a valid run: {where or 'it'} has more than {limit:,} values", hint=_AGAIN
            )
        try:
            return adapter(kind).validate_json(text, strict=True)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            place = ".".join([*filter(None, [where]), *map(str, first["loc"])])[:200]
            older = ": another version of irdiff wrote it" if first["type"].startswith("missing") else ""
            raise RunFolderError(
                f"{path} is not a valid run: {place!a}: {first['msg'][:200]}{older}",
                hint="read it with the irdiff that wrote it, or compare again",
            ) from error

    long_entries = {
        name: document.pop(name) for name, kind in _LONG.items() if isinstance(document.get(name), kind)
    }
    run: Run = read(Run, "", document | {name: _LONG[name]() for name in long_entries}, _MAX_HEAD_VALUES)
    launches = {key: read(Launch, "launches", record) for key, record in long_entries["launches"].items()}
    cases = tuple(
        read(Case, f"cases.{number}", record) for number, record in enumerate(long_entries["cases"])
    )
    return replace(run, launches=launches, cases=cases)


def artifact(folder: Path, digest: str) -> bytes | None:
    """Returns verified content; None if the run folder does not hold it."""
    if not run_checks.DIGEST.fullmatch(digest):
        raise RunFolderError(f"{digest[:80]!a} is not a digest of an artifact", hint=_AGAIN)
    root = folder if folder.is_dir() else folder.parent
    try:
        packed = read_file(root, ("artifacts", digest[:2], digest[2:]), MAX_ARTIFACT_BYTES)
    except _AbsentError:
        return None
    content = unpacked(packed, MAX_ARTIFACT_BYTES, f"artifact {digest} of {folder}")
    if sha256(content) != digest:
        raise RunFolderError(f"artifact {digest} of {folder} does not match its digest", hint=_AGAIN)
    return content


def unpacked(packed: bytes, limit_bytes: int, subject: str) -> bytes:
    """Raises RunFolderError if the content is damaged, cut off, or longer than the limit."""
    # in parts: a header may promise any size, and a block say in four bytes that a byte repeats 128 KiB long
    codec = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW_BYTES).decompressobj()
    content = bytearray()
    try:
        for start in range(0, len(packed), _CHUNK_BYTES):
            content += codec.decompress(packed[start : start + _CHUNK_BYTES])
            if len(content) > limit_bytes:
                raise RunFolderError(f"{subject} unpacks to more than {limit_bytes:,} bytes", hint=_AGAIN)
            if codec.eof:
                return bytes(content)
    except (zstandard.ZstdError, MemoryError) as error:
        raise RunFolderError(f"{subject} is damaged: {error}", hint=_AGAIN) from error
    raise RunFolderError(f"{subject} is cut off", hint=_AGAIN)


def first_mistake(error: ValidationError) -> str:
    """Returns the place of the first value that a schema refuses, and why."""
    first = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, first['loc']))[:200]}: {first['msg'][:200]}"


class _AbsentError(RunFolderError): ...


def read_file(root: Path, names: tuple[str, ...], limit_bytes: int) -> bytes:
    """Opens and reads like `opened`."""
    with opened(root, names, limit_bytes) as file:
        content = file.read(limit_bytes + 1)
    if len(content) > limit_bytes:
        raise RunFolderError(
            f"{root.joinpath(*names)} grew past {limit_bytes:,} bytes while it was read",
            hint="wait until the program that writes it has ended",
        )
    return content


@contextmanager
def opened(root: Path, names: tuple[str, ...], limit_bytes: int) -> Iterator[BinaryIO]:
    """Opens a plain file below `root`, which is trusted; nothing below it is: no link is followed. Raises
    RunFolderError if it is absent, larger than `limit_bytes`, a link, a pipe or a device.
    """
    path = root.joinpath(*names)
    try:
        with os.fdopen(_open_below(root, names), "rb") as file:
            status = os.fstat(file.fileno())
            if status.st_size > limit_bytes:
                raise RunFolderError(
                    f"{path} has {status.st_size:,} bytes; irdiff reads at most {limit_bytes:,}",
                    hint="compare in parts: irdiff compare … --shard 1/4",
                )
            yield file
    except FileNotFoundError as error:
        raise _AbsentError(
            f"{path} is not there", hint="give the folder that `irdiff compare` wrote"
        ) from error
    except OSError as error:
        reason = "it is a link, or below one" if error.errno in _LINK_ERRORS else error.strerror
        raise RunFolderError(
            f"{path} cannot be read: {reason}", hint="give the folder that `irdiff compare` wrote"
        ) from error


def _open_below(root: Path, names: tuple[str, ...]) -> int:
    """Opens component by component, so that a link cannot be swapped in between a check and the use."""
    if any(name in {"", ".", ".."} or "/" in name or "\0" in name for name in names):
        raise RunFolderError(f"{'/'.join(names)[:80]!a} is not a path of a run folder", hint=_AGAIN)
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for name in names[:-1]:
            inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
            os.close(folder)
            folder = inner
        # Non-blocking: opening a pipe that nobody writes to would wait for ever.
        descriptor = os.open(names[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    finally:
        os.close(folder)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise RunFolderError(f"{'/'.join(names)} is not a plain file", hint=_AGAIN)
    return descriptor
