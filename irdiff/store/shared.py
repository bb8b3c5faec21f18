"""One store for many machines: a run takes results from a bucket, server or folder before it begins, and
leaves its own there.

    bundles/DIGEST                        records and blobs, named by the SHA-256 of it all
    of/TOOLCHAIN/WORKLOAD@TARGET/DIGEST   empty: runs with this toolchain, workload and target used it
    of/TOOLCHAIN.txt                      these names: a plain web server has no listing

For a run of several workloads (or targets) it is `several`. A bundle is a line with the length of a table,
the table (JSON, zstd-compressed), and the blobs one after another, as they lie in the store.

The bucket's policy decides who may write there; writers are trusted with every result. A bundle is checked
against its digest, and each blob against its own. An error ends the use of the shared store, never the run,
and becomes one of its notes.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar
from urllib.parse import quote

import zstandard

from irdiff.config import SharedStoreConfig, StoreMode
from irdiff.errors import StoreError, UsageError
from irdiff.parallel import Progress, Report, in_parallel
from irdiff.store import PULLED, Store, key_of, sha256

T = TypeVar("T")
Name = tuple[str, str]
"""Kind and key of a record; nothing and the digest of a blob."""
Place = tuple[str, str]
"""A workload and a target."""
Records = dict[Name, str]
Blobs = dict[str, bytes]

_TIMEOUT = {"timeout": "60s", "connect_timeout": "5s", "allow_http": True}
_RETRY = {"max_retries": 2}
_MESSAGE_CHARACTERS = 200
_THREADS = 16
_BUNDLE_BYTES = 4 << 20
_MAX_TABLE_BYTES = 256 << 20
_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)
_START = b"irdiff-bundle/1 "
_SEVERAL = "several"
_UNSENT = "unsent"
"""The kind of records that list what a run used and could not leave in the shared store."""


class PlaceError(StoreError):
    """The shared store does not answer, or refuses."""


@dataclass
class Traffic:
    bundles: int = 0
    size_bytes: int = 0
    files: int = 0
    refused: list[str] = field(default_factory=list)
    """Bundles that were not taken: damaged, or of another digest."""
    sent_bundles: int = 0
    sent_bytes: int = 0


class SharedStore:
    """For one run after another: `pull`, then `push`."""

    def __init__(self, store: Store, config: SharedStoreConfig) -> None:
        self.traffic = Traffic()
        self.trouble = ""
        """The reason why it is not used any more."""
        self.url = config.url
        self._store = store
        self._writes = config.mode is StoreMode.WRITE
        self._obstore, self._bucket = _opened(config.url)
        self._toolchains: list[str] = []
        self._part = ""
        self._there: set[Name] = set()
        """Names of the results that the shared store has for every toolchain of the run."""
        self._lock = Lock()

    def pull(self, toolchains: Iterable[str], places: Collection[Place] | None, report: Report) -> None:
        """Takes results for some pairs of a workload and a target, or all. From then on the store notes what
        it is used for.
        """
        self.traffic, self.trouble, self._there = Traffic(), "", set()
        self._toolchains = sorted(set(toolchains))
        self._part = _part_of(places or ())
        wanted = None if places is None else _parts_with(places)
        with self._going_on():
            with ThreadPoolExecutor(_THREADS) as pool:
                listed = list(pool.map(self._bundles, self._toolchains))
            of_each = [
                {digest for part, digest in entries if wanted is None or part in wanted} for entries in listed
            ]
            every = sorted(set().union(*of_each))
            results = dict(in_parallel(self._taken, every, _THREADS, "fetch", report))
            names = (set().union(*(results[digest] for digest in digests)) for digests in of_each)
            self._there = set.intersection(*names)
        self._store.used = set()

    def push(self, report: Report) -> None:
        """Leaves what the run used and the place lacks. A machine that may only read keeps it for
        `push_kept`.
        """
        names = sorted((self._store.used or set()) - self._there)
        self._store.used = None
        record = {"toolchains": self._toolchains, "part": self._part, "names": names}
        if names and not (self._writes and not self.trouble and self._leave(record, report)):
            self._store.put_record(_UNSENT, key_of(record), record)

    def push_kept(self, report: Report) -> None:
        """Leaves what earlier runs could not."""
        for key in self._store.keys(_UNSENT):
            record = self._store.get_record(_UNSENT, key)
            if record is not None and self._leave(record, report):
                self._store.remove_record(_UNSENT, key)

    def notes(self) -> Iterator[str]:
        traffic, name = self.traffic, f"shared store {self.url}"
        if traffic.bundles or traffic.sent_bundles:
            size_mb, sent_mb = traffic.size_bytes / 1e6, traffic.sent_bytes / 1e6
            yield (
                f"{name}: {traffic.bundles} bundles taken, {traffic.files} files, {size_mb:.1f} MB"
                f", {traffic.sent_bundles} bundles left there, {sent_mb:.1f} MB"
            )
        if traffic.refused:
            yield f"{name}: {len(traffic.refused)} refused, the first one {traffic.refused[0]}"
        if self.trouble:
            yield f"{self.trouble}; what it was not asked for was made here"

    # reading

    def _bundles(self, toolchain: str) -> list[tuple[str, str]]:
        """Returns part and digest of each bundle of a toolchain."""
        if self.url.startswith(("http://", "https://")):
            names = (self._get(f"of/{toolchain}.txt") or b"").decode(errors="replace").splitlines()
        else:
            names = self._listed(toolchain)
        split_names = (name.rpartition("/") for name in names)
        return [(part, digest) for part, _, digest in split_names if _DIGEST.fullmatch(digest)]

    def _listed(self, toolchain: str) -> list[str]:
        """Returns names without `of/TOOLCHAIN/`."""
        prefix = f"of/{toolchain}/"
        pages = self._call(lambda: list(self._obstore.list(self._bucket, prefix=prefix)))
        return sorted(entry["path"].removeprefix(prefix) for page in pages for entry in page)

    def _taken(self, digest: str) -> tuple[str, set[Name]]:
        """Returns what the bundle holds."""
        pulled = self._store.get_record(PULLED, digest)
        if pulled is not None:
            return digest, {(kind, key) for kind, key in pulled}
        content = self._get(f"bundles/{digest}")
        if content is None:
            return digest, set()  # removed since it was listed
        try:
            if sha256(content) != digest:
                raise ValueError("its content does not match its digest")
            records, blobs = _unbundled(content)
            self._store.add(records, blobs)
        except (ValueError, TypeError, LookupError, MemoryError, zstandard.ZstdError) as error:
            with self._lock:
                self.traffic.refused.append(f"bundle {digest[:12]}: {error}")
            return digest, set()
        names = _names_of(records, blobs)
        self._store.put_record(PULLED, digest, names)
        with self._lock:
            self.traffic.bundles += 1
            self.traffic.size_bytes += len(content)
            self.traffic.files += len(names)
        return digest, set(names)

    # writing

    def _leave(self, record: Mapping[str, Any], report: Report) -> bool:
        """Returns whether everything is there now."""
        names = [(kind, key) for kind, key in record["names"]]
        with self._going_on():
            done = 0
            for records, blobs in self._bundled(names):
                content = _bundle(records, blobs)
                digest = sha256(content)
                self._put(f"bundles/{digest}", content)
                # only now, so that each name leads to a bundle that is there
                for toolchain in record["toolchains"]:
                    self._put(f"of/{toolchain}/{record['part']}/{digest}", b"")
                self._store.put_record(PULLED, digest, _names_of(records, blobs))
                self.traffic.sent_bundles += 1
                self.traffic.sent_bytes += len(content)
                done += len(records) + len(blobs)
                report(Progress(phase="share", done=done, total=len(names), detail=""))
            for toolchain in record["toolchains"]:
                self._put(f"of/{toolchain}.txt", "\n".join(self._listed(toolchain)).encode())
            return True
        return False

    def _bundled(self, names: Iterable[Name]) -> Iterator[tuple[Records, Blobs]]:
        records: Records = {}
        blobs: Blobs = {}
        size_bytes = 0
        for kind, key in names:
            content = self._store.text(kind, key) if kind else self._store.packed(key)
            if content is None:
                continue  # pruned meanwhile
            if kind:
                records[kind, key] = content.decode()
            else:
                blobs[key] = content
            size_bytes += len(content)
            if size_bytes >= _BUNDLE_BYTES:
                yield records, blobs
                records, blobs, size_bytes = {}, {}, 0
        if size_bytes:
            yield records, blobs

    # the place

    def _get(self, path: str) -> bytes | None:
        try:
            return self._call(lambda: bytes(self._obstore.get(self._bucket, path).bytes()))
        except PlaceError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                return None
            raise

    def _put(self, path: str, content: bytes) -> None:
        self._call(lambda: self._obstore.put(self._bucket, path, content))

    def _call(self, ask: Callable[[], T]) -> T:
        try:
            return ask()
        except Exception as error:  # whatever a network and its client may raise: the run goes on without
            message = _in_one_line(error)
            raise PlaceError(f"the shared store {self.url} does not answer: {message}") from error

    @contextlib.contextmanager
    def _going_on(self) -> Iterator[None]:
        """Notes that the place does not answer, instead of raising it."""
        try:
            yield
        except PlaceError as error:
            self.trouble = self.trouble or error.what


def _part_of(places: Collection[Place]) -> str:
    workloads, targets = ({place[number] for place in places} for number in (0, 1))
    return f"{_one_of(workloads)}@{_one_of(targets)}"


def _one_of(words: Collection[str]) -> str:
    return quote(next(iter(words)), safe="/") if len(words) == 1 else _SEVERAL


def _parts_with(places: Collection[Place]) -> set[str]:
    """Returns the parts of all runs that may have had one of the places."""
    quoted = ((quote(workload, safe="/"), quote(target)) for workload, target in places)
    return {
        f"{word}@{last}"
        for first, second in quoted
        for word in (first, _SEVERAL)
        for last in (second, _SEVERAL)
    }


def _names_of(records: Records, blobs: Blobs) -> list[Name]:
    return sorted([*records, *(("", digest) for digest in blobs)])


def _bundle(records: Records, blobs: Blobs) -> bytes:
    record_entries = [[kind, key, text] for (kind, key), text in records.items()]
    table = {
        "records": record_entries,
        "blobs": [[digest, len(content)] for digest, content in blobs.items()],
    }
    small = zstandard.compress(json.dumps(table).encode())
    return b"".join([_START, b"%d\n" % len(small), small, *blobs.values()])


def _unbundled(content: bytes) -> tuple[Records, Blobs]:
    """Raises ValueError, TypeError, LookupError, MemoryError and ZstdError if it is no bundle."""
    head, _, rest = content.partition(b"\n")
    place = int(head.removeprefix(_START))
    table = json.loads(zstandard.decompress(rest[:place], _MAX_TABLE_BYTES))
    blobs = {}
    for digest, size in table["blobs"]:
        if not _DIGEST.fullmatch(digest):
            raise ValueError("it names files that no store has")
        blobs[digest] = rest[place : place + size]
        place += size
    return {(str(kind), str(key)): str(text) for kind, key, text in table["records"]}, blobs


def read_file(url: str) -> bytes:
    """Raises UsageError, StoreError."""
    folder, _, name = url.rpartition("/")
    obstore, bucket = _opened(folder)
    try:
        return bytes(obstore.get(bucket, name).bytes())
    except Exception as error:  # a class of its own for each kind of answer
        raise StoreError(
            f"{url!a} cannot be read: {_in_one_line(error)}",
            hint="see that the URL is right, that this machine reaches it, and that its credentials are set",
        ) from error


def _in_one_line(error: Exception) -> str:
    """Leaves out the dump of the error's fields with which obstore's messages end."""
    return " ".join(str(error).partition("\n\nDebug source:")[0].split())[:_MESSAGE_CHARACTERS]


def _opened(url: str) -> tuple[Any, Any]:
    import obstore
    from obstore.store import LocalStore, from_url

    scheme, separator, _ = url.partition("://")
    try:
        if not separator or scheme == "file":
            path = Path(url.removeprefix("file://")).expanduser().absolute()
            return obstore, LocalStore(path, mkdir=True)
        return obstore, from_url(url, client_options=_TIMEOUT, retry_config=_RETRY)  # type: ignore[call-overload]
    except Exception as error:  # a class of its own for each kind of mistake
        raise UsageError(
            f"{url!a} is no shared store: {error}",
            hint="s3://BUCKET/PATH, gs://, az://, https:// or a folder",
        ) from error
