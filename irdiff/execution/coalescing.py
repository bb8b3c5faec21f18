"""How many sectors and wavefronts one access of a warp takes. Pure.

Calibrated against the counters of an H100, instruction by instruction (`tests/programs/counters.py`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

SECTOR_BYTES = 32
_BANKS = 32
_WORD_BYTES = 4
_WORDS = (1 << 22) - 1
"""Words of the window of shared memory, as a mask."""
_FAR = np.int64(1) << 62


def distinct(values: Any, active: Any) -> Any:
    """Different values among the active lanes of each line; `values` and `active`: (n, m)."""
    ordered = np.sort(np.where(active, values, _FAR), axis=1)
    new = (ordered[:, 1:] != ordered[:, :-1]) & (ordered[:, 1:] != _FAR)
    return new.sum(axis=1) + (ordered[:, 0] != _FAR)


def lines(addresses: Any, active: Any, line_bytes: int) -> Any:
    """Lines that each warp touches; `addresses`: (warps, lanes). None is wider than a line or unaligned."""
    return distinct(addresses // line_bytes, active)


def sectors(addresses: Any, active: Any) -> Any:
    """Sectors that each warp touches."""
    return lines(addresses, active, SECTOR_BYTES)


def copied_sectors(addresses: Any, active: Any, width: int) -> Any:
    """Counts sectors of a copy into shared memory; if lanes copy 16 bytes, for each half warp."""
    if width < 16:
        return sectors(addresses, active)
    half = addresses.shape[1] // 2
    return sectors(addresses.reshape(-1, half), active.reshape(-1, half)).reshape(-1, 2).sum(axis=1)


def least_lines(active: Any, width: int, line_bytes: int) -> Any:
    """Lines that the same bytes would take if they lay side by side."""
    return -(-active.sum(axis=1) * width // line_bytes)


def wavefronts(addresses: Any, active: Any, width: int, lanes_at_once: int | None = None) -> Any:
    """Passes through shared memory's banks: a pass serves each bank with one word.

    Accesses of 8 bytes are served by half warps, of 16 by quarter warps.
    """
    words_each = max(1, width // _WORD_BYTES)
    lanes = lanes_at_once or addresses.shape[1] // words_each
    groups = addresses.shape[1] // lanes
    words = addresses.reshape(-1, lanes) // _WORD_BYTES
    on = active.reshape(-1, lanes)
    if words_each > 1:
        words = (words[:, :, None] + np.arange(words_each)).reshape(len(words), -1)
        on = np.repeat(on, words_each, axis=1)
    return conflicts(words, on).reshape(-1, groups).sum(axis=1)


def load_wavefronts(addresses: Any, active: Any, width: int) -> Any:
    """As `wavefronts`; two parts share passes where lanes read in pairs (0 1, 2 3, … or 0 2, 1 3, …)."""
    if width <= _WORD_BYTES:
        return wavefronts(addresses, active, width)
    lanes = 2 * (addresses.shape[1] // (width // _WORD_BYTES))
    parts = addresses.reshape(-1, lanes), active.reshape(-1, lanes)
    together = conflicts(*_words(*parts, width))
    apart = conflicts(*_words(addresses.reshape(-1, lanes // 2), active.reshape(-1, lanes // 2), width))
    paired = _in_pairs(*parts, 1) | _in_pairs(*parts, 2)
    best = np.where(paired, together, apart.reshape(-1, 2).sum(axis=1))
    return best.reshape(len(addresses), -1).sum(axis=1)


def _words(addresses: Any, active: Any, width: int) -> tuple[Any, Any]:
    count = width // _WORD_BYTES
    words = (addresses[:, :, None] // _WORD_BYTES + np.arange(count)).reshape(len(addresses), -1)
    return words, np.repeat(active, count, axis=1)


def _in_pairs(addresses: Any, active: Any, distance: int) -> Any:
    other = np.arange(addresses.shape[1]) ^ distance
    same = (addresses == addresses[:, other]) | ~active | ~active[:, other]
    return same.all(axis=1)


def conflicts(words: Any, active: Any) -> Any:
    """The most different words of one bank in each line; 0 where no lane is active."""
    # the bank in the upper bits, so that one sort brings the words of a bank together
    words = words & _WORDS
    keys = np.where(active, (words % _BANKS << 40) | words, _FAR)
    keys = np.sort(keys, axis=1)
    fresh = np.ones(keys.shape, dtype=bool)
    fresh[:, 1:] = keys[:, 1:] != keys[:, :-1]
    fresh &= keys != _FAR
    lines = np.nonzero(fresh)
    counts = np.bincount(lines[0] * _BANKS + (keys[lines] >> 40), minlength=len(keys) * _BANKS)
    return counts.reshape(len(keys), _BANKS).max(axis=1)


def local_sectors(active: Any, width: int) -> Any:
    """Counts sectors of local memory, where words of one place lie side by side for the lanes of a warp."""
    words = max(1, width // _WORD_BYTES)
    groups = active.reshape(len(active), -1, SECTOR_BYTES // _WORD_BYTES).any(axis=2)
    return groups.sum(axis=1) * words
