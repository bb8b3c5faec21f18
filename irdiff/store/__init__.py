"""The cache: artifacts by the SHA-256 of their content, records by the key of their inputs.

    blobs/ab/cdef…         one artifact, zstd-compressed; its name is its digest, checked on every read
    records-1.sqlite3      records: results by their inputs (`store.records`)
    assembled/ab/cdef…     results of assemblers, which workers write (`irdiff/worker/compile/assembling.py`)
    tmp/…                  scratch folders of running processes (`store.owned_folders`)

Blobs appear by atomic rename and are never rewritten in place, and SQLite protects the records. So any number
of irdiff processes can share a store, and a killed one leaves nothing half-written. Nothing is trusted
because it is there: a damaged blob or record is removed and counts as absent.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import re
import shutil
import sqlite3
import stat
import time
import uuid
import weakref
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import zstandard
from pydantic_core import from_json

from irdiff.config import DAY_S
from irdiff.errors import StoreError
from irdiff.store import code, owned_folders
from irdiff.store.memo import Memo, MemoStep
from irdiff.store.records import Records

T = TypeVar("T")

_LEVEL = 3
_MAX_BLOB_BYTES = 1 << 30
_FILE = re.compile(
    r"(?:blobs|assembled)/[0-9a-f]{2}/(?:[0-9a-f]{62}(?:\.part-[0-9a-f]{32})?|\.part-[0-9a-f]{32})", re.ASCII
)
PULLED = "pulled"
"""The kind of records that list what was pulled from a shared store; pruning invalidates them."""


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def key_of(*parts: object) -> str:
    return sha256(_encoder.encode(parts).encode())


def _plain(value: object) -> object:
    """Returns the fields of a dataclass, or what any other type prints."""
    names = getattr(value, "__dataclass_fields__", ())  # not `fields`, which is asked a million times
    return {name: getattr(value, name) for name in names} or str(value)


_encoder = json.JSONEncoder(sort_keys=True, default=_plain)


@dataclass(frozen=True, kw_only=True)
class Usage:
    objects: int
    records: int
    size_bytes: int


class Store:
    """Raises StoreError if it cannot write."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.used: set[tuple[str, str]] | None = None
        """If set: kind and key of each record, "" and digest of each blob, that is read, written or asked
        for, and that is there.
        """
        self._records = Records(root)
        self._is_code_changed = False
        weakref.finalize(self, self._records.close)

    @property
    def assembled(self) -> Path:
        """The folder of results of assemblers, which workers read and write."""
        return self.root / "assembled"

    @property
    def _scratch(self) -> Path:
        return self.root / "tmp"

    # blobs

    def put(self, content: bytes) -> str:
        """Returns the digest."""
        digest = sha256(content)
        path = self.object_path(digest)
        if not path.exists():
            self._write(path, zstandard.compress(content, _LEVEL))
        self._note("", digest)
        return digest

    def get(self, digest: str) -> bytes | None:
        """Returns None if the blob is absent or was damaged (it is removed then)."""
        path = self.object_path(digest)
        try:
            content = _unpacked(_read(path))
        except FileNotFoundError:
            return None
        except OSError:
            content = b""
        if sha256(content) != digest:
            _discard(path)
            return None
        self._note("", digest)
        return content

    def has(self, digest: str) -> bool:
        """Its content is checked when it is read."""
        path = self.object_path(digest)
        try:
            status = path.stat()
        except OSError:
            return False
        _mark_used(path, status)
        if status.st_size:
            self._note("", digest)
        return status.st_size > 0

    def copy_object(self, digest: str, destination: Path) -> None:
        """Copies a blob, compressed as it is, into a run folder. Raises OSError."""
        destination.parent.mkdir(parents=True, exist_ok=True)
        source = self.object_path(digest)
        try:
            os.link(source, destination)
        except OSError:  # another file system, or one without links
            shutil.copyfile(source, destination)

    def object_path(self, digest: str) -> Path:
        return Path(f"{self.root}/blobs/{digest[:2]}/{digest[2:]}")

    def packed(self, digest: str) -> bytes | None:
        """Returns a compressed blob; None as for `get`."""
        try:
            packed = _read(self.object_path(digest))
        except OSError:
            return None
        return packed if sha256(_unpacked(packed)) == digest else None

    # records

    def memo(self, step: MemoStep[T], inputs: object) -> Memo[T]:
        """`inputs` are everything that the result depends on besides the step's own code."""
        return Memo(self, step, key_of(step.name, step.code, inputs))

    def put_record(self, kind: str, key: str, value: object) -> None:
        """Keeps nothing if irdiff was changed while it runs: no key would say which code made the value."""
        if not code.is_as_loaded():
            self._is_code_changed = True
            return
        self.add({(kind, key): json.dumps(value)}, {}, replace=True)  # the order of a map (of stages) is kept
        self._note(kind, key)

    def get_record(self, kind: str, key: str) -> Any | None:
        """Returns None if the record is absent or was damaged (it is removed then)."""
        text = self.text(kind, key)
        try:
            return None if text is None else from_json(text)  # equal strings of many records are one
        except ValueError:
            return None

    def text(self, kind: str, key: str) -> bytes | None:
        """Returns the JSON of a record; None as for `get_record`."""
        text = self._records.get(kind, key)
        if text is not None:
            self._note(kind, key)
        return text

    def keys(self, kind: str) -> list[str]:
        return self._records.keys(kind)

    def remove_record(self, kind: str, key: str) -> None:
        self._records.remove([(kind, key)])

    def add(
        self, records: Mapping[tuple[str, str], str], blobs: Mapping[str, bytes], *, replace: bool = False
    ) -> None:
        """Adds JSON and compressed blobs from elsewhere; existing ones stay. Blobs that do not match their
        digest are left out.
        """
        for digest, packed in blobs.items():
            if not self.has(digest) and sha256(_unpacked(packed)) == digest:
                self._write(self.object_path(digest), packed)
        encoded = [(kind, key, text.encode()) for (kind, key), text in records.items()]
        try:
            self._records.put(encoded, replace=replace)
        except (OSError, sqlite3.Error) as error:
            raise self._unwritable("records", error) from error

    # housekeeping

    def notes(self) -> Iterator[str]:
        for name in self._records.damaged:
            yield f"the cache's {name} is damaged and is not read any more: its records were made anew"
        if self._is_code_changed:
            yield "irdiff's own files changed while it ran: it kept no results from then on. Compare again"

    @contextlib.contextmanager
    def scratch(self) -> Iterator[Path]:
        """Yields a folder for this process alone, which is removed afterwards. Its path always has the same
        length.
        """
        with contextlib.ExitStack() as open_folders:
            try:
                folder = open_folders.enter_context(owned_folders.entered(self._scratch))
            except OSError as error:
                raise self._unwritable(self._scratch.name, error) from error
            yield folder

    def usage(self) -> Usage:
        blobs = [status.st_size for _, status in self._files()]
        records, size_bytes = self._records.usage()
        return Usage(objects=len(blobs), records=records, size_bytes=sum(blobs) + size_bytes)

    def remove_damaged(self) -> list[str]:
        """Removes what does not match its name or digest. Returns the names."""
        damaged = []
        for path, _ in self._files():
            folder, *digest = path.relative_to(self.root).parts
            if folder == "blobs" and ".part-" not in path.name and self.get("".join(digest)) is None:
                damaged.append("/".join((folder, *digest)))
        return damaged + self._records.remove_damaged()

    def prune(self, max_size_bytes: int | None, *, max_age_s: float | None = None) -> int:
        """Removes what was unused longest until the store fits, and everything that was unused for an age.
        Returns the bytes freed. Use is noted once a day.

        A record whose blobs are gone counts as absent, so any blob may be removed at any time.
        """
        owned_folders.remove_left(self._scratch)
        of_records = self._records.usage()[1]
        self._records.remove_left()
        # workers do not mark assembled files as used, but the file system notes their last access once a day
        blobs = [(max(blob.st_mtime, blob.st_atime), blob.st_size, path) for path, blob in self._files()]
        size_bytes = sum(size for _, size, _ in blobs) + self._records.usage()[1]
        excess = 0 if max_size_bytes is None else size_bytes - max_size_bytes
        oldest = 0.0 if max_age_s is None else time.time() - max_age_s
        used_until = -1.0
        for used, size in sorted([blob[:2] for blob in blobs] + self._records.by_use()):
            if excess <= 0 and used >= oldest:
                break
            used_until = used
            excess -= size
        old = [(size, path) for used, size, path in blobs if used <= used_until]
        for _, path in old:
            _discard(path)
        if used_until >= 0:
            self._records.prune(used_until, PULLED)
        return sum(size for size, _ in old) + of_records - self._records.usage()[1]

    def _files(self) -> Iterator[tuple[Path, os.stat_result]]:
        """Skips files whose names are not the store's."""
        for folder, _, names in itertools.chain(os.walk(self.root / "blobs"), os.walk(self.assembled)):
            for path in (Path(folder, name) for name in names):
                with contextlib.suppress(OSError):
                    status = path.lstat()
                    named = _FILE.fullmatch(path.relative_to(self.root).as_posix())
                    if named and stat.S_ISREG(status.st_mode):
                        yield path, status

    # files

    def _note(self, kind: str, key: str) -> None:
        if self.used is not None:
            self.used.add((kind, key))

    def _write(self, path: Path, content: bytes) -> None:
        try:
            write_whole(path, content)
        except OSError as error:
            raise self._unwritable(path.name, error) from error

    def _unwritable(self, name: str, error: Exception) -> StoreError:
        reason = getattr(error, "strerror", None) or error
        return StoreError(
            f"the store at {self.root} cannot be written: {reason} ({name})",
            hint="free space with `irdiff store prune --max-size 2GB`, or name another folder: "
            "`--cache DIR` or the variable IRDIFF_CACHE",
        )


def write_whole(path: Path, content: bytes) -> None:
    """Concurrent readers see the old file or the new one. Raises OSError."""
    part = path.with_name(f".part-{uuid.uuid4().hex}")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        part.write_bytes(content)
        part.replace(path)
    except OSError:
        _discard(part)
        raise


def sha256_of_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digests_below(folder: Path, files: Iterable[Path]) -> list[tuple[str, str]]:
    """Returns the path below the folder and the SHA-256 of each file."""
    return [(str(path.relative_to(folder)), sha256_of_file(path)) for path in files]


def _unpacked(packed: bytes) -> bytes:
    """Returns nothing if it is damaged."""
    try:
        return zstandard.decompress(packed, _MAX_BLOB_BYTES)
    except (zstandard.ZstdError, MemoryError):
        return b""


def _read(path: Path) -> bytes:
    content = path.read_bytes()
    _mark_used(path, path.stat())
    return content


def _mark_used(path: Path, status: os.stat_result) -> None:
    if time.time() - status.st_mtime > DAY_S:
        with contextlib.suppress(OSError):
            os.utime(path)


def _discard(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()
