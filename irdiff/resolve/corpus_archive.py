"""Packs a recorded corpus into one file, `NAME.tar.gz`, to be compared on another host.

It holds the sources of kernels and their launches. Of tensors it holds shapes and types, and the values of
small integer tensors, on which launches depend.
"""

from __future__ import annotations

import ast
import gzip
import io
import tarfile
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from irdiff import case_ids
from irdiff.config import Config
from irdiff.errors import CorpusError
from irdiff.model import Launch
from irdiff.resolve import corpus
from irdiff.store import sha256, shared

Entry = tuple[str, str]
"""A workload, and a label of its table."""


def is_archive(name: str | Path) -> bool:
    return str(name).endswith((".tar.gz", ".tgz"))


def unpacked(place: str, config: Config) -> Path:
    """Unpacks an archive into the cache, under a digest of its content.

    place: a file, or a URL (s3://, gs://, az://, https://, file://). Raises CorpusError, StoreError.
    """
    path = place.removeprefix("file://")
    try:
        content = shared.read_file(path) if "://" in path else Path(path).read_bytes()
    except OSError as error:
        raise CorpusError(f"{place} cannot be read: {error.strerror}", hint="name a file or a URL") from error
    folder = config.cache / "corpora" / sha256(content)[:16]
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        files = Path(scratch, "corpus")
        try:
            with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as archive:
                archive.extractall(files, filter="data")
        except (tarfile.TarError, OSError, EOFError) as error:
            raise CorpusError(
                f"{place} is not the archive of a corpus: {error}",
                hint="irdiff capture --out FILE.tar.gz writes one",
            ) from error
        corpus.load(files)
        files.rename(folder)
    return folder


def packed(folder: Path) -> bytes:
    """Returns the same bytes for the same files."""

    def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.mtime = member.uid = member.gid = 0
        member.uname = member.gname = ""
        return member

    content = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=content, mode="wb", mtime=0) as file,
        tarfile.open(fileobj=file, mode="w") as archive,
    ):
        for path in sorted(path for path in folder.rglob("*") if path.suffix in (".py", ".md")):
            archive.add(path, path.relative_to(folder), filter=plain)
    return content.getvalue()


def join(folders: Sequence[Path], into: Path) -> None:
    """Gives a workload that differs from an earlier one of the same name a number."""
    for folder in folders:
        for name in corpus.load(folder).workloads:
            text = (folder / f"{name}.py").read_text(encoding="utf-8")
            target, number = into / f"{name}.py", 2
            while target.exists() and target.read_text(encoding="utf-8") != text:
                target, number = into / f"{name}_{number}.py", number + 1
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")


def entry_of(launch: Launch) -> Entry:
    return launch.workload, case_ids.parse(launch.id).entry


def distinct(launches: Iterable[Launch]) -> set[Entry]:
    """Returns the entries with a launch whose input digest no earlier entry has for that target."""
    digests: dict[Entry, set[Entry]] = {}
    for launch in launches:
        # a launch without a digest is equal to no other
        digests.setdefault(entry_of(launch), set()).add((launch.target, launch.digest or launch.id))
    seen: set[Entry] = set()
    kept = set()
    for entry, mine in digests.items():
        if mine - seen:
            kept.add(entry)
        seen |= mine
    return kept


def drop(root: Path, entries: Iterable[Entry]) -> None:
    """Removes entries from the tables LAUNCHES, and workloads without an entry from the corpus."""
    labels: dict[str, set[str]] = {}
    for workload, label in entries:
        labels.setdefault(workload, set()).add(label)
    for workload, unwanted in labels.items():
        path = root / f"{workload}.py"
        text = path.read_text(encoding="utf-8")
        lines, table = text.splitlines(keepends=True), _entries(text)
        for key, value in table:
            if ast.literal_eval(key) in unwanted:
                assert value.end_lineno is not None
                lines[key.lineno - 1 : value.end_lineno] = [""] * (value.end_lineno - key.lineno + 1)
        if len(unwanted) < len(table):
            path.write_text("".join(lines), encoding="utf-8")
        else:
            path.unlink()


def shrink(root: Path, size_bytes: int) -> list[str]:
    """Removes the largest workloads until the rest fits. Returns their names."""
    paths = sorted(root.rglob("*.py"), key=lambda path: path.stat().st_size)
    removed = []
    while sum(path.stat().st_size for path in paths) > size_bytes:
        path = paths.pop()
        removed.append(path.relative_to(root).with_suffix("").as_posix())
        path.unlink()
    return removed


def _entries(text: str) -> list[tuple[ast.expr, ast.expr]]:
    for statement in ast.parse(text).body:
        match statement:
            case ast.Assign(targets=[ast.Name(id="LAUNCHES")], value=ast.Dict(keys=keys, values=values)):
                return [(key, value) for key, value in zip(keys, values, strict=True) if key is not None]
    raise CorpusError("a workload has no table LAUNCHES", hint="merge what `irdiff capture` recorded")
