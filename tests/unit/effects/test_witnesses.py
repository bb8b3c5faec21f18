"""The lines that show a difference."""

from types import SimpleNamespace

from irdiff.effects.witnesses import Witnesses
from irdiff.model import Sides


def side(*events):
    """(number, line) of each effect."""
    rows = [SimpleNamespace(number=number, line=line) for number, line in events]
    return SimpleNamespace(blocks=[SimpleNamespace(events=rows)])


def test_two_effects_in_one_line_of_which_the_other_side_has_one():
    """A bulk copy reads and writes: its line holds two effects."""
    texts = Sides(base=("a", "copy", "barrier"), head=("a", "copy"))
    base = side((1, 1), (7, 2), (2, 2), (3, 3))
    witness = Witnesses(base, side((1, 1), (2, 2)), texts).alone(SimpleNamespace(line=3), is_gone=True)
    assert [line.text for line in witness.base] == ["barrier"]
    assert [line.text for line in witness.head] == ["copy"]
