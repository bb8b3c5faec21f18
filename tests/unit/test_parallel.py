from __future__ import annotations

import threading
from pathlib import Path

import pytest

from irdiff.model import Sides
from irdiff.parallel import of_both
from irdiff.store import Store, sha256


def test_both_sides_are_asked_at_once() -> None:
    meeting = threading.Barrier(2, timeout=60)

    def ask(side: str) -> str:
        meeting.wait()
        return side.upper()

    assert of_both(ask) == Sides(base="BASE", head="HEAD")


@pytest.mark.parametrize("failing", ["base", "head"])
def test_what_one_side_raises_comes_when_both_have_ended(failing: str) -> None:
    ended = []

    def ask(side: str) -> None:
        if side == failing:
            raise KeyError(side)
        ended.append(side)

    with pytest.raises(KeyError, match=failing):
        of_both(ask)
    assert ended == [side for side in ("base", "head") if side != failing]


def test_what_both_use_of_a_store_is_noted_and_of_no_other(tmp_path: Path) -> None:
    store, other = Store(tmp_path / "store"), Store(tmp_path / "other")

    def ask(side: str) -> str:
        other.put(b"elsewhere")
        return store.put(side.encode())

    with store.noting() as noted:
        of_both(ask)
        with store.noting() as inner:
            store.put(b"inner")
    store.put(b"later")
    names = [sha256(text) for text in (b"base", b"head")]
    assert noted == {f"objects/{name[:2]}/{name[2:]}" for name in names}
    assert len(inner) == 1
