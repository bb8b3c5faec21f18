"""The content-addressed store: artifacts by SHA-256 of their content, records by the key of their cause.

    objects/ab/cdef…      one artifact, zstd-compressed; its name is its digest, checked on every read
    records/KIND/ab/cd…   one JSON record with a checksum of its own: what was made from what
    packs/ab/cdef…        many of both, fetched from a shared store (`store.packs`); its name is its digest
    tmp/PID-…             scratch folders of running processes

Files appear by atomic rename and are never rewritten in place, so any number of irdiff processes can
share a store, and a killed one leaves nothing half-written. Nothing is trusted because it is there: a
damaged object or record is removed and counts as absent. A file of its own is asked before those in packs.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import re
import shutil
import stat
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import zstandard
from pydantic_core import from_json

from irdiff.errors import StoreError
from irdiff.store.packs import FILE_NAME, PACK_START, LocalPacks, checked_table

_LEVEL = 3
_MAX_OBJECT_BYTES = 1 << 30

_PACK_NAME = re.compile(r"packs/[0-9a-f]{2}/[0-9a-f]{62}", re.ASCII)
_PART = re.compile(
    r"(?:(?:objects|packs)/[0-9a-f]{2}|records/\w[\w-]*/[0-9a-f]{2})/\.part-[0-9a-f]{32}", re.ASCII
)
_SCRATCH = re.compile(r"(0\d{7})-\d{8}")
"""A process id, which has at most seven digits, and a number."""
_OBJECT_START = b"\x28\xb5\x2f\xfd"
"""Of every zstd frame (RFC 8878, 3.1.1)."""
_RECORD_START = re.compile(rb"[0-9a-f]{64}\n")
_CHECKSUM_BYTES = 65
"""Of a record: its checksum and a line feed."""


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def key_of(*parts: object) -> str:
    """The key of a record: SHA-256 over the JSON of everything that it depends on."""
    return sha256(_encoder.encode(parts).encode())


def _plain(value: object) -> object:
    """Of a dataclass its fields, of any other type what it prints."""
    names = getattr(value, "__dataclass_fields__", ())  # not `fields`, which is asked a million times
    return {name: getattr(value, name) for name in names} or str(value)


_encoder = json.JSONEncoder(sort_keys=True, default=_plain)


_noted: ContextVar[Mapping[Store, set[str]]] = ContextVar("noted", default=MappingProxyType({}))
"""Where each store notes what is used of it now."""


@dataclass(frozen=True, kw_only=True)
class Usage:
    objects: int
    """As files of their own, as the records."""
    records: int
    packs: int
    size_bytes: int


class Store:
    """See the module's text. Raises StoreError where it cannot write."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._counter = itertools.count()
        self._local = threading.local()
        self._packs = LocalPacks(root / "packs")

    @property
    def assembled(self) -> Path:
        """What assemblers made, in files that workers read and write (`irdiff/worker/assembling.py`)."""
        return self.root / "assembled"

    # files

    @contextlib.contextmanager
    def noting(self) -> Iterator[set[str]]:
        """The names of the files that this thread, or one that works for it (`parallel.of_both`), writes,
        reads or asks for, and that are there.
        """
        noted: set[str] = set()
        before = _noted.set({**_noted.get(), self: noted})
        try:
            yield noted
        finally:
            _noted.reset(before)

    def file(self, name: str) -> bytes | None:
        """A file as it lies here; None where it is absent or damaged."""
        try:
            content = self._content(name)
        except OSError:
            return None
        return content if content is not None and is_sound(name, content) else None

    def _content(self, name: str) -> bytes | None:
        """A file as it lies here, not checked; None where it is absent. Raises OSError."""
        try:
            return _content(f"{self.root}/{name}")
        except FileNotFoundError:
            return self._packs.read(name)

    def _drop(self, name: str) -> None:
        """Removes a damaged file; a pack has it no more."""
        with contextlib.suppress(OSError):
            try:
                os.unlink(f"{self.root}/{name}")  # noqa: PTH108 - as the name is written everywhere here
            except FileNotFoundError:
                self._packs.forget(name)

    def add_pack(self, digest: str, content: bytes) -> frozenset[str]:
        """Keeps a pack of another store, whose digest was checked; returns the names of its files.

        Raises DamagedPackError, and keeps nothing, where it is no pack. Each file in it is checked when it is
        read, as all others are.
        """
        table, start = checked_table(content)
        path = self._packs.path(digest)
        self._write(path, content)
        self._packs.attach(path, table, start)
        return frozenset(name for name, _ in table)

    def is_own(self, name: str) -> bool:
        """Whether a file is here by itself, in no pack alone."""
        return os.path.lexists(f"{self.root}/{name}")

    def files_of_pack(self, digest: str) -> frozenset[str]:
        """The names of its files; none where it is not here."""
        return self._packs.names(digest)

    def _note(self, name: str) -> None:
        noted = _noted.get().get(self)
        if noted is not None:
            noted.add(name)

    # objects

    def put(self, content: bytes, *, replace: bool = False) -> str:
        """Keeps `content`; returns its digest. With `replace` a file that is there is not trusted."""
        digest = sha256(content)
        path, name = self.object_path(digest), _object_name(digest)
        if replace or not (path.exists() or self._packs.size(name)):
            self._write(path, self._codec()[0].compress(content))
        self._note(name)
        return digest

    def get(self, digest: str) -> bytes | None:
        """The content of a digest; None where it is absent or was damaged (it is removed then)."""
        name = _object_name(digest)
        try:
            packed = self._content(name)
            if packed is None:
                return None
            content = self._codec()[1].decompress(packed, max_output_size=_MAX_OBJECT_BYTES)
        except (zstandard.ZstdError, OSError, MemoryError):
            content = b""
        if sha256(content) != digest:
            self._drop(name)
            return None
        self._note(name)
        return content

    def has(self, digest: str) -> bool:
        """Whether an object is there and not empty. Its content is checked when it is read."""
        name = _object_name(digest)
        try:
            is_there = os.stat(f"{self.root}/{name}").st_size > 0  # noqa: PTH116 - asked a million times
        except OSError:
            is_there = self._packs.size(name) > 0
        if is_there:
            self._note(name)
        return is_there

    def copy_object(self, digest: str, destination: Path) -> None:
        """Puts an object, compressed as it is here, into a run folder. Raises OSError."""
        destination.parent.mkdir(parents=True, exist_ok=True)
        source = self.object_path(digest)
        try:
            os.link(source, destination)
        except FileNotFoundError:
            content = self._packs.read(_object_name(digest))
            if content is None:
                raise
            _create(str(destination), content)
        except OSError:  # another file system, or one without links
            shutil.copyfile(source, destination)

    # records

    def put_record(self, kind: str, key: str, value: object) -> None:
        body = json.dumps(value)  # the order of a map (of stages) is kept
        path = self._record(kind, key)
        self._write(path, f"{sha256(body.encode())}\n{body}".encode())
        self._note(_record_name(kind, key))

    def get_record(self, kind: str, key: str) -> Any | None:
        """The value of a record; None where it is absent or was damaged (it is removed then)."""
        content = self._sound_record(kind, key)
        # equal strings of many records are one
        return None if content is None else from_json(content[_CHECKSUM_BYTES:])

    def checksum(self, kind: str, key: str) -> str | None:
        """The SHA-256 of what a record says; None as of `get_record`."""
        content = self._sound_record(kind, key)
        return None if content is None else content[: _CHECKSUM_BYTES - 1].decode()

    def _sound_record(self, kind: str, key: str) -> bytes | None:
        name = _record_name(kind, key)
        try:
            content = self._content(name)
        except OSError:
            content = b""
        if content is None:
            return None
        if not is_sound(name, content):
            self._drop(name)
            return None
        self._note(name)
        return content

    def records(self, kind: str) -> Iterator[Any]:
        """The values of all records of a kind that are files of their own."""
        for path, _ in self._files(f"records/{kind}"):
            value = self.get_record(kind, path.parent.name + path.name)
            if value is not None:
                yield value

    # housekeeping

    @contextlib.contextmanager
    def scratch(self) -> Iterator[Path]:
        """A folder of this process's own, gone afterwards. Its path always has the same length."""
        path = self.root / "tmp" / f"{os.getpid():08d}-{next(self._counter):08d}"
        try:
            path.mkdir(parents=True)
        except OSError as error:
            raise self._unwritable(path, error) from error
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)

    def usage(self) -> Usage:
        objects = list(self._files("objects"))
        records = list(self._files("records"))
        packs = list(self._files("packs"))
        size = sum(stat.st_size for _, stat in [*objects, *records, *packs])
        return Usage(objects=len(objects), records=len(records), packs=len(packs), size_bytes=size)

    def remove_damaged(self) -> list[str]:
        """Reads every file, and removes those that are not what their name says; returns their names."""
        found = []
        for path, _ in self._every_file():
            name = path.relative_to(self.root).as_posix()
            content = _read(path)
            if _is_name(name) and _is_own(path) and content is not None and not is_sound(name, content):
                self._discard(path)
                found.append(name)
        return found

    def prune(self, max_size_bytes: int | None, *, max_age_s: float | None = None) -> int:
        """Removes what was unused longest until the store fits, and all that was unused for an age; returns
        the bytes freed.

        A record whose objects are gone counts as absent, so any object may go at any time.
        """
        self._remove_dead_scratch()
        files = sorted(self._every_file(), key=lambda row: _last_used_ns(row[1]))
        excess = 0 if max_size_bytes is None else sum(stat.st_size for _, stat in files) - max_size_bytes
        oldest_ns = 0 if max_age_s is None else time.time_ns() - int(max_age_s * 1e9)
        freed = 0
        for path, status in files:
            if freed >= excess and _last_used_ns(status) >= oldest_ns:
                break
            if _is_own(path):
                self._discard(path)
                freed += status.st_size
        return freed

    def _remove_dead_scratch(self) -> None:
        for folder in (self.root / "tmp").glob("*"):
            found = _SCRATCH.fullmatch(folder.name)
            if found and not folder.is_symlink() and not Path("/proc", found[1].lstrip("0")).exists():
                shutil.rmtree(folder, ignore_errors=True)

    def _every_file(self) -> Iterator[tuple[Path, os.stat_result]]:
        return itertools.chain.from_iterable(map(self._files, ("objects", "records", "packs")))

    def _files(self, part: str) -> Iterator[tuple[Path, os.stat_result]]:
        """Files that have a name of the store's: the folder may be anybody's, and hold anything beside."""
        for folder, _, names in os.walk(self.root / part):
            for name in names:
                path = Path(folder, name)
                with contextlib.suppress(OSError):
                    relative = path.relative_to(self.root).as_posix()
                    if _is_name(relative) or _PART.fullmatch(relative):
                        status = path.lstat()
                        if stat.S_ISREG(status.st_mode):
                            yield path, status

    def object_path(self, digest: str) -> Path:
        """Where an object lies if it is a file of its own."""
        return Path(f"{self.root}/{_object_name(digest)}")

    def _record(self, kind: str, key: str) -> Path:
        return Path(f"{self.root}/{_record_name(kind, key)}")

    def _codec(self) -> tuple[zstandard.ZstdCompressor, zstandard.ZstdDecompressor]:
        # one pair a thread: neither may be used by two threads at once
        if not hasattr(self._local, "codec"):
            self._local.codec = (zstandard.ZstdCompressor(level=_LEVEL), zstandard.ZstdDecompressor())
        codec: tuple[zstandard.ZstdCompressor, zstandard.ZstdDecompressor] = self._local.codec
        return codec

    def _write(self, path: Path, content: bytes) -> None:
        folder, _, _ = str(path).rpartition("/")
        part = f"{folder}/.part-{uuid.uuid4().hex}"
        try:
            try:
                _create(part, content)
            except FileNotFoundError:
                path.parent.mkdir(parents=True, exist_ok=True)
                _create(part, content)
            os.replace(part, path)  # noqa: PTH105 - a large comparison writes hundreds of thousands
        except OSError as error:
            self._discard(Path(part))
            raise self._unwritable(path, error) from error

    def _unwritable(self, path: Path, error: OSError) -> StoreError:
        return StoreError(
            f"the store at {self.root} cannot be written: {error.strerror or error} ({path.name})",
            hint="free space with `irdiff store prune --max-size 2GB`, or name another folder: "
            "`--cache DIR` or the variable IRDIFF_CACHE",
        )

    @staticmethod
    def _discard(path: Path) -> None:
        with contextlib.suppress(OSError):
            path.unlink()


def _object_name(digest: str) -> str:
    return f"objects/{digest[:2]}/{digest[2:]}"


def _record_name(kind: str, key: str) -> str:
    return f"records/{kind}/{key[:2]}/{key[2:]}"


def _content(path: str) -> bytes:
    """Of a small file, without what `open` does besides: a large comparison reads a million."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, os.fstat(descriptor).st_size)
    finally:
        os.close(descriptor)


def _create(path: str, content: bytes) -> None:
    """Without what `open` does besides, as `_content`."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        left = memoryview(content)
        while left:
            left = left[os.write(descriptor, left) :]
    finally:
        os.close(descriptor)


def is_sound(name: str, content: bytes) -> bool:
    """Whether a file is what its name says: an object or pack of its digest, a record of its checksum."""
    if name.startswith("records/"):
        checksum, _, body = content.partition(b"\n")
        return bool(body) and sha256(body).encode() == checksum
    if name.startswith("packs/"):
        return sha256(content) == name.removeprefix("packs/").replace("/", "")
    try:
        unpacked = zstandard.ZstdDecompressor().decompress(content, max_output_size=_MAX_OBJECT_BYTES)
    except (zstandard.ZstdError, MemoryError):
        return False
    return sha256(unpacked) == name.removeprefix("objects/").replace("/", "")


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def _last_used_ns(status: os.stat_result) -> int:
    return max(status.st_mtime_ns, status.st_atime_ns)


def _is_own(path: Path) -> bool:
    """Whether a file that has a name of the store's begins as what the store writes; empty ones do."""
    try:
        with path.open("rb") as file:
            start = file.read(65)
    except OSError:
        return False
    return not start or start.startswith((_OBJECT_START, PACK_START)) or bool(_RECORD_START.match(start))


def _is_name(name: str) -> bool:
    """Whether a store has files of this name, relative to it."""
    return bool(FILE_NAME.fullmatch(name) or _PACK_NAME.fullmatch(name))
