from __future__ import annotations

from rich.text import Text

from irdiff.report import tables
from irdiff.report.tables import Column

COLUMNS = (Column(name="case"), Column(name="change", right=True), Column(name="outputs"))
LONG = "attention/flash_forward_with_a_long_name:causal-d128-stages4-bf16@sm_90"
ROWS = [[Text(LONG), Text("+1.70 %"), Text("equal")], [Text("a/b:c@sm_90"), Text("-0.2 %"), Text("")]]


def show(width: int | None) -> list[str]:
    return [line.plain for line in tables.lines(COLUMNS, ROWS, width)]


def test_a_pipe_has_one_line_a_row() -> None:
    heading, first, second = show(None)
    assert heading.split() == ["case", "change", "outputs"]
    assert first.split() == [LONG, "+1.70", "%", "equal"]
    assert first.index("%") == second.index("%")


def test_an_id_is_never_cut() -> None:
    for width in (20, 60, 80, 120):
        assert LONG in "\n".join(show(width))
        assert "…" not in "\n".join(show(width))


def test_where_there_is_no_room_a_row_goes_on_below() -> None:
    assert show(60) == [LONG, "    change +1.70 %  outputs equal", "a/b:c@sm_90", "    change -0.2 %"]
    assert show(22)[1:3] == ["    change +1.70 %", "    outputs equal"]


def test_no_row_is_longer_than_the_terminal_but_for_its_id() -> None:
    assert all(len(line) <= 40 for line in show(40) if "@" not in line)
