from __future__ import annotations

import threading

import pytest

from irdiff.model import Sides
from irdiff.parallel import of_both


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
