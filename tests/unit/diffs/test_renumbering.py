import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irdiff.diffs.renumbering import Kind, align, in_numbering_of_head

BASE = """\
func @k(%0, %1) {
%2 = load %0
%3 = load %1
%4 = add %2, %3
%5 = mul %4, %4
store %0, %5
}""".splitlines()


def show(base, head, ir="ttgir"):
    return [
        row.kind.value
        + (base[row.base] if row.head is None and row.base is not None else head[row.head or 0])
        for row in align(ir, base, head).rows
        if row.kind is not Kind.SAME
    ]


def edited(old, new):
    return [line.replace(old, new) for line in BASE]


def shifted(lines, start, insert):
    """The lines with one more before the line `start`, and every later value numbered anew."""

    def renumber(line):
        return re.sub(r"%(\d+)", lambda m: f"%{int(m[1]) + (int(m[1]) > 1)}", line)

    return [*lines[:start], insert, *map(renumber, lines[start:])]


@pytest.mark.parametrize(
    ("head", "wanted"),
    [
        ([*BASE[:2], "fence", *BASE[2:]], ["+fence"]),
        (shifted(BASE, 1, "%2 = constant 1"), ["+%2 = constant 1"]),
        (edited("mul %4, %4", "mul %4, %3"), ["-%5 = mul %4, %4", "+%5 = mul %4, %3"]),
        (edited("add %2, %3", "add %3, %2"), ["-%4 = add %2, %3", "+%4 = add %3, %2"]),
        (edited("store %0, %5", "store %0, %5 : f16"), ["-store %0, %5", "+store %0, %5 : f16"]),
        (BASE, []),
    ],
    ids=["inserted", "numbered anew", "another operand", "operands exchanged", "another word", "the same"],
)
def test_only_what_differs_beyond_the_numbers_of_values_is_a_change(head, wanted):
    assert show(BASE, head) == wanted


@pytest.mark.parametrize(
    ("ir", "base", "head", "partners"),
    [
        ("ttgir", ["a", "%0 = x 1", "b"], ["a", "%0 = x 2", "b"], [("-", 1), ("+", 1)]),
        ("amdgcn", ["v_add v0, v1, v2", "end"], ["v_add v0, v1, v3", "end"], [("~", None)]),
        ("ptx", ["mov.u32 %r1, %tid.x;"], ["mov.u32 %r1, %tid.y;"], [("-", 0), ("+", 0)]),
        (
            "ttgir",
            ["a", "%0 = load x cache 1", "b"],
            ["a", "fence", "%0 = load x cache 2", "barrier", "b"],
            [("-", 2), ("+", None), ("+", 1), ("+", None)],
        ),
        ("ttgir", [], [], []),
    ],
    ids=[
        "replaced",
        "other registers are never the same",
        "special registers",
        "among more lines",
        "nothing",
    ],
)
def test_a_changed_line_knows_the_line_that_it_became(ir, base, head, partners):
    rows = align(ir, base, head).rows
    assert [(row.kind.value, row.partner) for row in rows if row.kind is not Kind.SAME] == partners


def test_a_long_text_with_far_changes_keeps_what_is_the_same():
    base = ["x", *(line for i in range(900) for line in (f"call @f{i}", "fence")), "y"]
    head = ["z", *(("barrier" if i % 5 == 2 else line) for i, line in enumerate(base[1:-1])), "w"]
    same = sum(ours == theirs for ours, theirs in zip(base, head, strict=True))
    assert sum(row.kind is Kind.SAME for row in align("llir", base, head).rows) == same


LINES = st.lists(
    st.sampled_from(["%{} = load %{}", "%{} = add %{}, %{}", "store %{}, %{}", "fence", "return"]).flatmap(
        lambda shape: st.lists(st.integers(0, 6), min_size=3, max_size=3).map(lambda n: shape.format(*n))
    ),
    max_size=25,
)


@settings(derandomize=True, deadline=None, max_examples=120)
@given(base=LINES, head=LINES, ir=st.sampled_from(["ttgir", "llir", "ptx", "amdgcn"]))
def test_every_line_is_there_once_and_in_order(base, head, ir):
    rows = align(ir, base, head).rows
    assert [row.base for row in rows if row.base is not None] == list(range(len(base)))
    assert [row.head for row in rows if row.head is not None] == list(range(len(head)))


@settings(derandomize=True, deadline=None, max_examples=120)
@given(base=LINES, head=LINES)
def test_lines_called_the_same_differ_by_one_renaming_only(base, head):
    to_head = {}
    to_base = {}
    for row in align("ttgir", base, head).rows:
        if row.kind is Kind.SAME:
            assert row.base is not None
            assert row.head is not None
            ours, theirs = base[row.base], head[row.head]
            assert re.sub(r"%\d+", "%", ours) == re.sub(r"%\d+", "%", theirs)
            for a, b in zip(re.findall(r"%\d+", ours), re.findall(r"%\d+", theirs), strict=True):
                assert to_head.setdefault(a, b) == b
                assert to_base.setdefault(b, a) == a


def renumbered(base, head):
    """The removed lines as they are shown among head's."""
    found = align("ttgir", base, head)
    return [
        in_numbering_of_head(base[row.base], found.names)
        for row in found.rows
        if row.kind is Kind.REMOVED and row.base is not None
    ]


def test_a_removed_line_has_the_numbers_of_head_and_a_value_that_head_has_not_a_mark():
    head = [line.replace("mul %5, %5", "mul %5, %2") for line in shifted(BASE, 1, "%2 = constant 1")]
    assert renumbered(BASE, head) == ["%6 = mul %5, %5"]
    shorter = [*(line for line in BASE[:-2] if "mul" not in line), "store %0, %4", BASE[-1]]
    assert renumbered(BASE, shorter) == ["%5' = mul %4, %4", "store %0, %5'"]


@settings(derandomize=True, deadline=None, max_examples=200)
@given(base=LINES, head=LINES)
def test_one_number_is_one_value_in_the_numbering_of_head(base, head):
    names = align("ttgir", base, head).names
    assert len(set(names.values())) == len(names)
    assert all(not name.endswith("'") for name in names.values())
