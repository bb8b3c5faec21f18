from __future__ import annotations

from irdiff.cli import diff_view
from irdiff.cli.diff_view import View
from irdiff.diffs import stage_diff

BASE = ["define void @k() {", "%1 = add i32 %0, 1", "%2 = mul i32 %1, 2", "store i32 %2", "ret void", "}"]
HEAD = [
    "define void @k() {",
    "%1 = add i32 %0, 1",
    "%2 = mul i32 %1, 4",
    "fence",
    "store i32 %2",
    "ret void",
    "}",
]


def show(*, context: int = 1, raw: bool = False, side_by_side: bool = False) -> list[str]:
    diff = stage_diff.of_lines("llir", BASE, HEAD)
    view = View(context=context, raw=raw, side_by_side=side_by_side, width=80)
    return [text.plain.rstrip() for text in diff_view.lines(diff, view)]


def test_unified() -> None:
    assert show() == [
        "             … 1 line without a change",
        "    2     2   %1 = add i32 %0, 1",
        "    3       - %2 = mul i32 %1, 2",
        "          3 + %2 = mul i32 %1, 4",
        "          4 + fence",
        "    4     5   store i32 %2",
        "             … 2 lines without a change",
    ]


def test_side_by_side() -> None:
    rows = show(side_by_side=True)
    assert rows[2].split() == [
        "3",
        "%2",
        "=",
        "mul",
        "i32",
        "%1,",
        "2",
        "│",
        "3",
        "%2",
        "=",
        "mul",
        "i32",
        "%1,",
        "4",
    ]
    assert rows[3].split() == ["│", "4", "fence"]
    assert len({row.index("│") for row in rows if "│" in row}) == 1


def test_without_context_only_changes_are_shown() -> None:
    assert [row for row in show(context=0) if "change" not in row] == [
        "    3       - %2 = mul i32 %1, 2",
        "          3 + %2 = mul i32 %1, 4",
        "          4 + fence",
    ]


def test_equal_texts_show_nothing() -> None:
    diff = stage_diff.of_lines("llir", BASE, BASE)
    view = View(context=3, raw=False, side_by_side=False, width=80)
    assert list(diff_view.lines(diff, view)) == []


def test_side_by_side_cuts_nothing() -> None:
    long = "%2 = call i32 @f(" + ", ".join(f"i32 %{n}" for n in range(3, 40)) + ")"
    diff = stage_diff.of_lines("llir", BASE, [*HEAD[:2], long, *HEAD[3:]])
    view = View(context=1, raw=False, side_by_side=True, width=60)
    rows = [text.plain for text in diff_view.lines(diff, view)]
    assert max(map(len, rows)) <= 60
    right = "".join(row.partition("│")[2][7:].rstrip() for row in rows if "│" in row)
    assert long.replace(" ", "") in right.replace(" ", "")


def test_removed_lines_stand_in_the_numbering_of_head_and_only_words_are_marked() -> None:
    head = ["define void @k() {", "%1 = load i32 %9", "%2 = add i32 %0, 1", "%3 = mul i32 %2, 4"]
    diff = stage_diff.of_lines("llir", BASE[:3], head)
    removed = [diff.line(i) for i, row in enumerate(diff.rows) if row.kind.value == "-"]
    assert [line.text for line in removed] == ["%3 = mul i32 %2, 2"]
    assert [line.text[a:b] for line in removed for a, b in line.marks] == ["2"]
