from __future__ import annotations

from collections.abc import Sequence

from irdiff.cli import diff_view
from irdiff.cli.diff_view import View
from irdiff.diffs import stage_diff

BASE = ["define void @k() {", "%1 = add i32 %0, 1", "%2 = mul i32 %1, 2", "store i32 %2", "ret void", "}"]
HEAD = [*BASE[:2], "%2 = mul i32 %1, 4", "fence", *BASE[3:]]


def show(head: Sequence[str] = HEAD, *, side_by_side: bool = False, context: int = 1) -> list[str]:
    view = View(context=context, raw=False, side_by_side=side_by_side, width=60)
    return [text.plain.rstrip() for text in diff_view.lines(stage_diff.of_lines("llir", BASE, head), view)]


def test_unified_with_context_or_without() -> None:
    before, same, *changes, after, last = show()
    assert (before.strip(), last.strip()) == ("… 1 line without a change", "… 2 lines without a change")
    assert (same, after) == ("    2     2   %1 = add i32 %0, 1", "    4     5   store i32 %2")
    assert changes == [
        "    3       - %2 = mul i32 %1, 2",
        "          3 + %2 = mul i32 %1, 4",
        "          4 + fence",
    ]
    assert [row for row in show(context=0) if "change" not in row] == changes
    assert show(BASE) == []


def test_side_by_side_stands_in_columns_and_cuts_nothing() -> None:
    rows = show(side_by_side=True)
    assert [" ".join(row.split()) for row in rows[2:4]] == [
        "3 %2 = mul i32 %1, 2 │ 3 %2 = mul i32 %1, 4",
        "│ 4 fence",
    ]
    assert len({row.index("│") for row in rows if "│" in row}) == 1
    long = "%2 = call i32 @f(" + ", ".join(f"i32 %{n}" for n in range(3, 40)) + ")"
    rows = show([*HEAD[:2], long, *HEAD[3:]], side_by_side=True)
    assert max(map(len, rows)) <= 60
    right = "".join(row.partition("│")[2][7:].rstrip() for row in rows if "│" in row)
    assert long.replace(" ", "") in right.replace(" ", "")


def test_removed_lines_stand_in_the_numbering_of_head_and_only_words_are_marked() -> None:
    head = ["define void @k() {", "%1 = load i32 %9", "%2 = add i32 %0, 1", "%3 = mul i32 %2, 4"]
    diff = stage_diff.of_lines("llir", BASE[:3], head)
    removed = [diff.line(i) for i, row in enumerate(diff.rows) if row.kind.value == "-"]
    assert [line.text for line in removed] == ["%3 = mul i32 %2, 2"]
    assert [line.text[a:b] for line in removed for a, b in line.marks] == ["2"]
