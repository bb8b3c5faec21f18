"""The mutation suite in a small size; `python -m tests.programs.mutation --full` runs it in full."""

from __future__ import annotations

import pytest

from tests.programs.mutation.suite import run


@pytest.mark.parametrize(("name", "least_kinds"), [("meaningful", 40), ("cosmetic", 25)])
def test_every_mutant_is_judged_right(name: str, least_kinds: int) -> None:
    tally = run(name, per_kind=2)
    assert not tally.wrong, tally.wrong
    assert len({kind for _, kind in tally.kinds}) >= least_kinds
