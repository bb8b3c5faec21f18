"""A shared store during one run: what it has is fetched before it is needed, what the run made is left there.

The local store is in front: every question is asked of it alone. For each workload and target of the run, the
packs of both toolchains are fetched at once, many at a time, each checked against its digest as it arrives.
They stay whole: the local store reads them where they are, and checks each file in them as it checks its own.
Which files a case used is noted by the thread that works on it; with `--store-mode write` those that the
shared store lacks become packs, of one target each.

A server that is slow, refuses or goes away ends the use of it, never the run: that goes on with what is here,
and its notes say so.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Lock
from urllib.parse import quote

from irdiff.config import SharedStoreConfig, StoreMode
from irdiff.parallel import Report, in_parallel
from irdiff.shared_store.place import Place, PlaceError
from irdiff.shared_store.signatures import Signer, Verifier
from irdiff.store import Store, key_of, sha256
from irdiff.store.packs import HEAD_BYTES, DamagedPackError, packed, table_bytes, table_of

_THREADS = 16
_PACK_BYTES = 4 << 20
"""A pack is closed once it has as much: a large comparison asks for few, one of a single case for little."""


def part_of(workload: str, target: str) -> str:
    """What belongs together in a shared store, beside the toolchain."""
    return f"{quote(workload, safe='/')}@{quote(target)}"


def _target(part: str) -> str:
    return part.rpartition("@")[2]


@dataclass
class Traffic:
    """What went over the network in one run."""

    packs: int = 0
    size_bytes: int = 0
    files: int = 0
    refused: list[str] = field(default_factory=list)
    """Packs that were not taken: not signed, of another digest, or damaged."""
    sent_packs: int = 0
    sent_bytes: int = 0


@dataclass(frozen=True, kw_only=True)
class _Found:
    """A pack that the shared store says belongs to a toolchain and part."""

    toolchain: str
    part: str
    digest: str
    signature: str

    @property
    def scope(self) -> str:
        return f"{self.toolchain}/{self.part}"


class SharedStoreSession:
    """Thread-safe where steps run on several threads: `noting` and `add`."""

    def __init__(self, store: Store, place: Place, config: SharedStoreConfig) -> None:
        self.traffic = Traffic()
        self.trouble = ""
        """Why the shared store is not used any more."""
        self._store = store
        self._place = place
        self._mode = config.mode
        self._verifier = Verifier(config.public_key)
        self._signer = Signer(config.signing_key)
        self._noted: dict[str, set[str]] = {}
        self._there: dict[str, set[str]] = {}
        """By toolchain and part: files that are in packs already."""
        self._lock = Lock()

    @contextlib.contextmanager
    def noting(self, part: str) -> Iterator[None]:
        """What this thread uses of the store meanwhile belongs to a part."""
        with self._store.noting() as names:
            yield
        with self._lock:
            self._noted.setdefault(part, set()).update(names)

    # reading

    def pull(self, toolchains: Iterable[str], parts: Iterable[str] | None, report: Report) -> None:
        """Fetches what there is of toolchains, of some parts of it or of all."""
        wanted = None if parts is None else set(parts)
        self._each_pack(self._fetched, toolchains, wanted, "fetch", report)

    def look(self, toolchains: Iterable[str], report: Report) -> None:
        """Only which files are in packs already, before a push."""
        self._each_pack(self._looked_at, toolchains, None, "look", report)

    def _each_pack(
        self,
        step: Callable[[str], tuple[str, frozenset[str]]],
        toolchains: Iterable[str],
        wanted: set[str] | None,
        phase: str,
        report: Report,
    ) -> None:
        with self._going_on():
            with ThreadPoolExecutor(_THREADS) as pool:
                found = [row for rows in pool.map(self._listed, dict.fromkeys(toolchains)) for row in rows]
            chosen = [row for row in found if wanted is None or row.part in wanted]
            scopes: dict[str, list[_Found]] = {}
            for row in filter(self._is_accepted, chosen):
                scopes.setdefault(row.digest, []).append(row)
            for digest, names in in_parallel(step, list(scopes), _THREADS, phase, report):
                for row in scopes[digest] if self._mode is StoreMode.WRITE else ():
                    self._there.setdefault(row.scope, set()).update(names)

    def _listed(self, toolchain: str) -> list[_Found]:
        found = []
        writes = self._mode is StoreMode.WRITE
        ask = self._place.listed_packs_of if writes else self._place.packs_of
        for path in ask(toolchain):
            part, _, name = path.rpartition("/")
            digest, separator, signature = name.partition("-")
            if separator and len(digest) == 64:
                found.append(_Found(toolchain=toolchain, part=part, digest=digest, signature=signature))
        return found

    def _is_accepted(self, row: _Found) -> bool:
        accepted = self._verifier.accepts(row.scope, row.digest, row.signature)
        if not accepted:
            self.traffic.refused.append(f"{row.part}: not signed by the key that is trusted")
        return accepted

    def _fetched(self, digest: str) -> tuple[str, frozenset[str]]:
        """The names of the files of a pack, which is here now."""
        if known := self._store.files_of_pack(digest):
            return digest, known
        content = self._place.get_if_there(f"packs/{digest}")
        if content is None:
            return digest, frozenset()  # pruned since it was listed
        taken, refused = frozenset[str](), ""
        if sha256(content) != digest:
            refused = f"pack {digest[:12]}: its content is not of its digest"
        else:
            try:
                taken = self._store.add_pack(digest, content)
            except DamagedPackError as error:
                refused = f"pack {digest[:12]}: {error.what}"
        with self._lock:
            self.traffic.packs += 1
            self.traffic.size_bytes += len(content)
            self.traffic.files += len(taken)
            self.traffic.refused += [refused] if refused else []
        return digest, taken

    def _looked_at(self, digest: str) -> tuple[str, frozenset[str]]:
        try:
            start = self._place.get(f"packs/{digest}", range(HEAD_BYTES))
            table = self._place.get(f"packs/{digest}", range(HEAD_BYTES, HEAD_BYTES + table_bytes(start)))
            return digest, frozenset(name for name, _ in table_of(table))
        except DamagedPackError:
            return digest, frozenset()

    # writing

    def noted(self, toolchains: Iterable[str]) -> dict[str, dict[str, set[str]]]:
        """What the threads of this run used, by part and toolchain; kept too, for `irdiff store push`.

        Without what lies in packs alone: it was fetched.
        """
        every = tuple(dict.fromkeys(toolchains))
        own = {part: set(filter(self._store.is_own, names)) for part, names in self._noted.items()}
        found = {part: names for part, names in own.items() if names}
        for part, names in found.items():
            for toolchain in every:
                key = key_of("scope/1", toolchain, part)
                known = self._store.get_record("scope", key)
                both = sorted({*(known["names"] if known else ()), *names})
                self._store.put_record("scope", key, {"toolchain": toolchain, "part": part, "names": both})
        return {part: dict.fromkeys(every, names) for part, names in found.items()}

    def push(self, rows: Mapping[str, Mapping[str, set[str]]], report: Report) -> None:
        """Leaves what the shared store lacks of files, by part and toolchain, unless it may only be read."""
        if self._mode is not StoreMode.WRITE:
            return
        of_target: dict[str, dict[str, Mapping[str, set[str]]]] = {}
        for part, names_of in sorted(rows.items()):
            of_target.setdefault(_target(part), {})[part] = {
                toolchain: names - self._there.get(f"{toolchain}/{part}", set())
                for toolchain, names in names_of.items()
            }
        with self._going_on():
            left = in_parallel(self._pushed, list(of_target.values()), _THREADS, "share", report)
            scopes = [path for paths in left for path in paths]
            # only now, so that each name leads to a pack that is there
            for _ in in_parallel(lambda path: self._place.put(path, b""), scopes, _THREADS, "share", report):
                pass
            for toolchain in sorted({toolchain for row in rows.values() for toolchain in row}):
                self._place.leave_list(toolchain)

    def _pushed(self, missing: Mapping[str, Mapping[str, set[str]]]) -> list[str]:
        """Leaves files, by part and toolchain; the names that lead from these to their packs."""
        scopes = []
        for pack, names in self._packs(missing):
            digest = sha256(pack)
            self._place.put(f"packs/{digest}", pack)
            for part, names_of in missing.items():
                for toolchain in (name for name, row in names_of.items() if not row.isdisjoint(names)):
                    scope = f"{toolchain}/{part}"
                    scopes.append(f"scopes/{scope}/{digest}-{self._signer.sign(scope, digest)}")
            with self._lock:
                self.traffic.sent_packs += 1
                self.traffic.sent_bytes += len(pack)
        return scopes

    def _packs(self, missing: Mapping[str, Mapping[str, set[str]]]) -> Iterator[tuple[bytes, set[str]]]:
        """Each file once, those of a part together."""
        files: dict[str, bytes] = {}
        size_bytes = 0
        of_parts = (sorted(set().union(*names_of.values())) for names_of in missing.values())
        for name in dict.fromkeys(itertools.chain.from_iterable(of_parts)):
            content = self._store.file(name)
            if content is None:
                continue  # pruned meanwhile
            files[name] = content
            size_bytes += len(content)
            if size_bytes >= _PACK_BYTES:
                yield packed(files.items()), set(files)
                files, size_bytes = {}, 0
        if files:
            yield packed(files.items()), set(files)

    # trouble

    @contextlib.contextmanager
    def _going_on(self) -> Iterator[None]:
        """What goes wrong is told, not raised."""
        try:
            yield
        except PlaceError as error:
            self.trouble = self.trouble or error.what

    def notes(self) -> Iterator[str]:
        """What the run's notes say of it."""
        told = self.traffic
        url = self._place.url
        if told.packs or told.sent_packs:
            sent = (
                f", {told.sent_packs} packs left there, {told.sent_bytes / 1e6:.1f} MB"
                if told.sent_packs
                else ""
            )
            yield (
                f"shared store {url}: {told.packs} packs taken, {told.files} files, "
                f"{told.size_bytes / 1e6:.1f} MB{sent}"
            )
        if told.refused:
            yield f"shared store {url}: {len(told.refused)} refused, the first one {told.refused[0]}"
        if self.trouble:
            yield f"{self.trouble}; what it was not asked for was made here"
