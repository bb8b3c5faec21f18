"""A shared store made smaller, and looked through for damage."""

from __future__ import annotations

import datetime
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from irdiff.shared_store.place import Place, SharedObject
from irdiff.store import is_sound, sha256
from irdiff.store.packs import DamagedPackError, unpacked

_THREADS = 16


@dataclass(frozen=True, kw_only=True)
class Pruned:
    packs: int
    size_bytes: int
    left: int
    """How many packs are left."""


def prune(place: Place, max_size_bytes: int | None, max_age_days: float | None) -> Pruned:
    """Removes the oldest packs, and every name that leads to a pack that is gone."""
    packs = sorted(place.entries("packs/"), key=lambda entry: entry.modified, reverse=True)
    kept: list[SharedObject] = []
    gone: list[SharedObject] = []
    size_bytes = 0
    oldest = None if max_age_days is None else _now() - datetime.timedelta(days=max_age_days)
    for entry in packs:
        size_bytes += entry.size_bytes
        fits = max_size_bytes is None or size_bytes <= max_size_bytes
        (kept if fits and (oldest is None or entry.modified >= oldest) else gone).append(entry)
    names = [entry.path for entry in place.entries("scopes/")]
    left = {entry.path.removeprefix("packs/") for entry in kept}
    leading = [name for name in names if not name.endswith(".txt") and _pack_of(name) not in left]
    place.delete(leading)  # first, so that no name leads nowhere for long
    place.delete([entry.path for entry in gone])
    for toolchain in {name.split("/")[1] for name in leading}:
        place.leave_list(toolchain)
    return Pruned(packs=len(gone), size_bytes=sum(entry.size_bytes for entry in gone), left=len(kept))


def damaged(place: Place) -> list[str]:
    """The packs that are not of their digest, or hold a file that is not of its own."""
    with ThreadPoolExecutor(_THREADS) as pool:
        rows = pool.map(lambda entry: (entry.path, _is_whole(place, entry)), place.entries("packs/"))
        return [path for path, whole in rows if not whole]


def _is_whole(place: Place, entry: SharedObject) -> bool:
    content = place.get(entry.path)
    if sha256(content) != entry.path.removeprefix("packs/"):
        return False
    try:
        return all(is_sound(name, bytes(file)) for name, file in unpacked(content))
    except DamagedPackError:
        return False


def _pack_of(name: str) -> str:
    return name.rpartition("/")[2].partition("-")[0]


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)
