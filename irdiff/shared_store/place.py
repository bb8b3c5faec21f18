"""Where a shared store lies: a bucket, a server or a folder, asked through `obstore`.

    packs/DIGEST                                          a pack, by the SHA-256 of its content
    scopes/TOOLCHAIN/WORKLOAD@TARGET/DIGEST-SIGNATURE     empty: that this pack belongs there

    scopes/TOOLCHAIN.txt                                  what follows `scopes/TOOLCHAIN/` in these names

A scope is all that comparisons with one toolchain made of one workload for one target. Every writer leaves
the list of a toolchain's scopes behind. It is all that a reader asks for: a listing comes in pages of a
thousand, one after another, and a plain web server has none. Whoever writes asks the names themselves.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from irdiff.errors import StoreError, UsageError

T = TypeVar("T")

_SCHEMES = ("s3", "gs", "az", "https", "http")
_TIMEOUT = {"timeout": "60s", "connect_timeout": "5s", "allow_http": True}
_RETRY = {"max_retries": 2}
_MESSAGE_CHARACTERS = 200
_TIMES_LISTED = 5
"""At most: as long as other writers leave more."""


class PlaceError(StoreError):
    """The shared store does not answer, or refuses."""


@dataclass(frozen=True, kw_only=True)
class SharedObject:
    """One object of the shared store."""

    path: str
    size_bytes: int
    modified: datetime


class Place:
    """Thread-safe. Every failure is a PlaceError."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._obstore, self._store = _opened(url)
        self._lists = not url.startswith(("http://", "https://"))

    def get(self, path: str, part: range | None = None) -> bytes:
        if part is None:
            return self._asked(lambda: bytes(self._obstore.get(self._store, path).bytes()))
        ends = {"start": part.start, "end": part.stop}
        return self._asked(lambda: bytes(self._obstore.get_range(self._store, path, **ends)))

    def get_if_there(self, path: str) -> bytes | None:
        try:
            return self.get(path)
        except PlaceError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                return None
            raise

    def put(self, path: str, content: bytes) -> None:
        self._asked(lambda: self._obstore.put(self._store, path, content))

    def delete(self, paths: Sequence[str]) -> None:
        if paths:
            self._asked(lambda: self._obstore.delete(self._store, list(paths)))

    def entries(self, prefix: str) -> list[SharedObject]:
        """All below a prefix."""
        return self._asked(lambda: list(self._listed(prefix)))

    def packs_of(self, toolchain: str) -> list[str]:
        """What follows `scopes/TOOLCHAIN/` in the names of its packs, as the last writer left it."""
        found = self.get_if_there(f"scopes/{toolchain}.txt")
        if found is not None:
            return found.decode(errors="replace").splitlines()
        return self.listed_packs_of(toolchain) if self._lists else []

    def listed_packs_of(self, toolchain: str) -> list[str]:
        """The same, from the names themselves."""
        prefix = f"scopes/{toolchain}/"
        return sorted(entry.path.removeprefix(prefix) for entry in self.entries(prefix))

    def leave_list(self, toolchain: str) -> None:
        """For readers. Where others write at the same time, the list of the last one to look is left."""
        left = None
        for _ in range(_TIMES_LISTED):
            found = self.listed_packs_of(toolchain)
            if found == left:
                return
            self.put(f"scopes/{toolchain}.txt", "\n".join(found).encode())
            left = found

    def _listed(self, prefix: str) -> Iterator[SharedObject]:
        for rows in self._obstore.list(self._store, prefix=prefix):
            for row in rows:
                yield SharedObject(path=row["path"], size_bytes=row["size"], modified=row["last_modified"])

    def _asked(self, ask: Callable[[], T]) -> T:
        try:
            return ask()
        except Exception as error:  # whatever a network and its client may raise: the run goes on without
            said = " ".join(str(error).split())[:_MESSAGE_CHARACTERS]
            raise PlaceError(f"the shared store {self.url} does not answer: {said}") from error


def _opened(url: str) -> tuple[Any, Any]:
    try:
        import obstore
        from obstore.store import LocalStore, from_url
    except ImportError as error:
        raise UsageError(
            f"the shared store {url} needs the extra `remote`", hint="pip install 'irdiff[remote]'"
        ) from error
    scheme, separator, _ = url.partition("://")
    if not separator or scheme == "file":
        path = Path(url.removeprefix("file://")).expanduser()
        with contextlib.suppress(OSError):
            path.mkdir(parents=True, exist_ok=True)
        if not path.is_dir():
            raise UsageError(f"the shared store {path} is no folder")
        return obstore, LocalStore(path.absolute())
    if scheme not in _SCHEMES:
        raise UsageError(
            f"{url!a} is no shared store", hint="s3://BUCKET/PATH, gs://, az://, https:// or a folder"
        )
    try:
        return obstore, from_url(url, client_options=_TIMEOUT, retry_config=_RETRY)  # type: ignore[call-overload]
    except Exception as error:  # a class of its own for each kind of mistake
        raise UsageError(f"the shared store {url} cannot be opened: {error}") from error
