"""What is packed comes back, in any order."""

from irdiff.normalize.compressed_text import PackedLines

LINES = [f"line {n} é" for n in range(2500)]


def test_lines_are_a_sequence():
    packed = PackedLines(iter(LINES))
    assert list(packed) == LINES
    assert len(packed) == len(LINES)
    assert [packed[n] for n in (0, 2499, 999, 1000, -1)] == [LINES[n] for n in (0, 2499, 999, 1000, -1)]
    assert packed[990:1010] == LINES[990:1010]
    assert list(PackedLines([])) == []
    assert list(PackedLines([""])) == [""]
    assert list(PackedLines(["\ud800"])) == ["\ud800"]
