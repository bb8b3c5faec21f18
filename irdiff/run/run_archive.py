"""Opens a run that comes as a zip or tar file, like a CI artifact. The file may come from an attacker.

Only the files of a run folder are unpacked, to names made here from validated parts. A file that holds a
link, a device, or a path that leaves it is refused as a whole. Every byte counts as it is unpacked, whatever
the headers promise.
"""

from __future__ import annotations

import contextlib
import gzip
import re
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Protocol

import zstandard

from irdiff.errors import RunFolderError

MAX_ARCHIVE_BYTES = 2 << 30
MAX_UNPACKED_BYTES = 4 << 30
MAX_MEMBERS = 200_000
MAX_ZIP_DIRECTORY_BYTES = 64 << 20
_CHUNK_BYTES = 1 << 20
_MAX_TAR_READ_BYTES = 4 << 20
_MAX_WINDOW_BYTES = 128 << 20

# An optional folder that everything lies in, then a file of a run folder. Other files stay packed.
_PART = re.compile(r"(?:([^/]+)/)?(run\.json|timing\.json|failure\.json|artifacts/[0-9a-f]{2}/[0-9a-f]{62})")
_DAMAGED = (
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    EOFError,
    gzip.BadGzipFile,
    zstandard.ZstdError,
    NotImplementedError,
    RuntimeError,
    ValueError,
    OverflowError,
    MemoryError,
    OSError,
)
"""Errors of the readers on damaged files, found by fuzzing; OSError also if the disk is full."""


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Path]:
    """Yields the run folder, or an unpacked copy of the archive, which is removed afterwards. Raises
    RunFolderError.
    """
    if path.is_dir() or path.suffix == ".json":
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="irdiff-run-") as name:
        folder = Path(name, "run")
        folder.mkdir()
        unpack(path, folder)
        yield folder


def unpack(archive: Path, folder: Path) -> None:
    """Takes zip, tar, tar.gz or tar.zst, and an empty folder."""
    try:
        if not stat.S_ISREG(archive.stat().st_mode):
            raise RunFolderError(
                f"{archive} is neither a folder nor a plain file",
                hint="give the folder that `irdiff compare` wrote, or an archive of it",
            )
        if archive.stat().st_size > MAX_ARCHIVE_BYTES:
            raise RunFolderError(
                f"{archive} is larger than {MAX_ARCHIVE_BYTES >> 20} MiB, the most that irdiff unpacks",
                hint="compare in parts: irdiff compare … --shard 1/4",
            )
        with archive.open("rb") as file:
            magic = file.read(4)
            file.seek(0)
            _unpack_as(magic, file, _Writer(archive, folder))
    except FileNotFoundError as error:
        raise RunFolderError(
            f"{archive} is not there", hint="irdiff runs lists the runs of this machine"
        ) from error
    except _DAMAGED as error:
        raise RunFolderError(
            f"{archive} cannot be unpacked: {str(error)[:200]!a}", hint="download it again, or compare again"
        ) from error
    if not ((folder / "run.json").exists() or (folder / "failure.json").exists()):
        raise RunFolderError(f"{archive} holds no run.json", hint="give the zip of a run folder")


def _unpack_as(magic: bytes, file: IO[bytes], writer: _Writer) -> None:
    if magic[:2] == b"PK":
        _unpack_zip(file, writer)
    elif magic[:2] == b"\x1f\x8b":
        with gzip.GzipFile(fileobj=file) as plain:
            _unpack_stream(plain, writer)
    elif magic == b"\x28\xb5\x2f\xfd":
        codec = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW_BYTES)
        with codec.stream_reader(file, closefd=False) as plain:
            _unpack_stream(plain, writer)
    else:
        _unpack_tar(file, writer)


class _Readable(Protocol):
    def read(self, size: int = -1, /) -> bytes: ...


class _Writer:
    """Writes members below one folder and counts what all of them cost."""

    def __init__(self, archive: Path, folder: Path) -> None:
        self.archive = archive
        self.folder = folder
        self.left_bytes = MAX_UNPACKED_BYTES
        self.members = 0
        self.prefix: str | None = None

    def refuse(self, reason: str) -> RunFolderError:
        return RunFolderError(
            f"{self.archive} is not the archive of a run: {reason}",
            hint="pack the folder that `irdiff compare` wrote: python3 -m zipfile -c run.zip RUN",
        )

    def destination(self, name: str) -> Path | None:
        """Returns None for a member that is no part of a run."""
        self.members += 1
        if self.members > MAX_MEMBERS:
            raise self.refuse(f"more than {MAX_MEMBERS} members")
        while name.startswith("./"):
            name = name[2:]
        if re.match(r"[/\\]|.{0,2}:", name) or ".." in re.split(r"[/\\]", name) or "\0" in name:
            raise self.refuse(f"a member is called {name[:80]!a}")
        match = _PART.fullmatch(name)
        if not match:
            return None
        if self.prefix is not None and self.prefix != (match[1] or ""):
            raise self.refuse("it holds more than one run")
        self.prefix = match[1] or ""
        return self.folder.joinpath(*match[2].split("/"))

    def write(self, destination: Path, source: _Readable) -> None:
        destination.parent.mkdir(parents=True, exist_ok=True)
        if destination.exists():
            raise self.refuse(f"{destination.name} is there twice")
        with destination.open("xb") as file:
            for chunk in self.counted(source):
                file.write(chunk)

    def counted(self, source: _Readable) -> Iterator[bytes]:
        while chunk := source.read(_CHUNK_BYTES):
            self.left_bytes -= len(chunk)
            if self.left_bytes < 0:
                raise self.refuse(f"it unpacks to more than {MAX_UNPACKED_BYTES} bytes")
            yield chunk


# zip


def _unpack_zip(file: IO[bytes], writer: _Writer) -> None:
    if _zip_directory_bytes(file) > MAX_ZIP_DIRECTORY_BYTES:
        raise writer.refuse("its directory is larger than that of any run")
    with zipfile.ZipFile(file) as archive:
        for member in archive.infolist():
            mode = member.external_attr >> 16
            if mode and stat.S_IFMT(mode) not in {0, stat.S_IFREG, stat.S_IFDIR}:
                raise writer.refuse(f"{member.filename[:80]!a} is a link or a device")
            destination = writer.destination(member.filename)
            if destination is None or member.is_dir():
                continue
            if member.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED} or member.flag_bits & 1:
                raise writer.refuse(f"{member.filename[:80]!a} is encrypted, or packed in an unusual way")
            with archive.open(member) as source:
                writer.write(destination, source)


def _zip_directory_bytes(file: IO[bytes]) -> int:
    """Reads the size from the end records (PKWARE APPNOTE 6.3.10, 4.3.14, 4.3.16): `zipfile` reads that much
    at once.
    """
    size = file.seek(0, 2)
    start = max(0, size - 65_557 - 76)
    file.seek(start)
    tail = file.read()
    file.seek(0)
    end = tail.rfind(b"PK\5\6")
    if end < 0 or len(tail) < end + 22:
        raise zipfile.BadZipFile("it has no end record")
    stated = int.from_bytes(tail[end + 12 : end + 16], "little")
    wide = tail.rfind(b"PK\6\6", 0, end)
    if wide >= 0 and len(tail) >= wide + 48:
        stated = max(
            stated if stated != 0xFFFFFFFF else 0, int.from_bytes(tail[wide + 40 : wide + 48], "little")
        )
    return stated


# tar


def _unpack_stream(plain: _Readable, writer: _Writer) -> None:
    # To disk first: `tarfile` can then skip what is not wanted, and every unpacked byte is counted once here.
    with tempfile.TemporaryFile(dir=writer.folder.parent) as whole:
        for chunk in writer.counted(plain):
            whole.write(chunk)
        whole.seek(0)
        writer.left_bytes = MAX_UNPACKED_BYTES
        _unpack_tar(whole, writer)


def _unpack_tar(file: IO[bytes], writer: _Writer) -> None:
    with tarfile.open(fileobj=_ShortReads(file), mode="r:") as archive:  # type: ignore[call-overload]
        for member in archive:
            if member.issparse() or not (member.isreg() or member.isdir()):
                raise writer.refuse(f"{member.name[:80]!a} is a link or a device")
            destination = writer.destination(member.name)
            if destination is None or member.isdir():
                continue
            source = archive.extractfile(member)
            assert source is not None
            writer.write(destination, source)


class _ShortReads:
    """Refuses large reads: `tarfile` reads an extended header at once, of any size that it states."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= _MAX_TAR_READ_BYTES:
            raise tarfile.ReadError("a header is larger than that of any run")
        return self.file.read(size)

    def seek(self, offset: int, whence: int = 0) -> int:
        return self.file.seek(offset, whence)

    def tell(self) -> int:
        return self.file.tell()
