"""Which lines of two texts are the same, what a reader sees of the others, what edits are found with, and what a case is
launched with.
"""

import random
import re
from collections import Counter
from dataclasses import replace
from operator import itemgetter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irdiff.compare import abstraction, alignment, edits
from irdiff.compare.line_alignment import Kind, align
from irdiff.diffs import disassembly, launch_changes, stage_diff
from irdiff.diffs.group_diff import GroupDiffs
from irdiff.model import Sides, Verdict
from irdiff.texts import ir_of
from tests.texts import text_of
from tests.unit import runs
from tests.unit.golden import golden
from tests.unit.runs import TTGIR, TTGIR_AT_HEAD

BASE = text_of("diffs/base.txt").splitlines()


@pytest.mark.parametrize("row", golden("diffs")["differs"], ids=itemgetter("why"))
def test_only_what_differs_beyond_the_numbers_of_values_is_a_change(row):
    found = (line for line in align("ttgir", BASE, row["head"]).rows if line.kind is not Kind.SAME)
    said = [
        line.kind.value + (BASE[line.base] if line.head is None else row["head"][line.head]) for line in found
    ]
    assert said == row["wanted"]


@pytest.mark.parametrize("row", golden("diffs")["becomes"], ids=itemgetter("why"))
def test_a_changed_line_knows_the_line_that_it_became(row):
    lines = [line for line in align(row["ir"], row["base"], row["head"]).rows if line.kind is not Kind.SAME]
    found = [f"{line.kind.value}{'' if line.partner is None else line.partner}" for line in lines]
    assert found == row["rows"]


def test_a_long_text_with_far_changes_keeps_what_is_the_same():
    base = ["x", *(line for i in range(900) for line in (f"call @f{i}", "fence")), "y"]
    head = ["z", *("barrier" if i % 5 == 2 else line for i, line in enumerate(base[1:-1])), "w"]
    same = sum(ours == theirs for ours, theirs in zip(base, head, strict=True))
    assert sum(row.kind is Kind.SAME for row in align("llir", base, head).rows) == same


LINES = st.lists(
    st.sampled_from(["%{} = load %{}", "%{} = add %{}, %{}", "store %{}, %{}", "fence", "return"]).flatmap(
        lambda shape: st.lists(st.integers(0, 6), min_size=3, max_size=3).map(lambda n: shape.format(*n))
    ),
    max_size=25,
)


@pytest.mark.slow
@settings(max_examples=200)
@given(base=LINES, head=LINES, ir=st.sampled_from(["ttgir", "llir", "ptx", "amdgcn"]))
def test_every_line_is_there_once_and_lines_called_the_same_differ_by_one_renaming_only(base, head, ir):
    found = align(ir, base, head)
    assert [row.base for row in found.rows if row.base is not None] == list(range(len(base)))
    assert [row.head for row in found.rows if row.head is not None] == list(range(len(head)))
    assert len(set(found.names.values())) == len(found.names)
    assert all(not name.endswith("'") for name in found.names.values())
    to_head, to_base = {}, {}
    for row in found.rows if ir == "ttgir" else ():
        if row.kind is Kind.SAME:
            ours, theirs = base[row.base], head[row.head]
            assert re.sub(r"%\d+", "%", ours) == re.sub(r"%\d+", "%", theirs)
            for a, b in zip(re.findall(r"%\d+", ours), re.findall(r"%\d+", theirs), strict=True):
                assert to_head.setdefault(a, b) == b
                assert to_base.setdefault(b, a) == a


def changed(base, head):
    diff = stage_diff.compare("ttgir", base, head)
    return [diff.line(index) for index, row in enumerate(diff.rows) if row.kind is not Kind.SAME]


def test_changed_lines_have_raw_numbers_and_marks_and_are_cleaned():
    removed, added, fence = changed(TTGIR, TTGIR_AT_HEAD)
    assert (removed.base_number, removed.head_number) == (5, 0)
    assert (added.base_number, added.head_number) == (0, 5)
    assert [removed.text[start:end] for start, end in removed.marks] == ["arith.addf"]
    assert "arith.addf %c, %c" in removed.raw
    assert fence.text == "ttng.fence_async_shared {bCluster = false}"
    for line in changed(TTGIR, TTGIR_AT_HEAD.replace("bCluster", 'name = "\u202eevil", bCluster')):
        assert "\u202e" not in line.text + line.raw


def test_hunks_hold_every_change_with_its_context():
    lines = [str(number) for number in range(30)]
    far = stage_diff.of_lines("launch", lines, [*lines[:5], "x", *lines[5:20], "y", *lines[20:]])
    assert [(rows.start, rows.stop) for rows in far.hunks(2)] == [(3, 8), (19, 24)]


def test_what_synchronizes_comes_before_lines_that_moved_and_arithmetic():
    """Of the hunks of one line: a multiplication that moved, an address that is new, a barrier that is gone."""
    kept = [f"%f{n} = fadd float %a, {n}.0" for n in range(8)]
    moved, address = "%m = fmul float %a, %a", "%p = getelementptr i8, ptr %a, i64 4"
    barrier = "tail call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)"
    base = [moved, *kept[:4], *kept[4:], barrier]
    head = [*kept[:4], address, *kept[4:6], moved, *kept[6:]]
    texts = ("\n".join(["define void @k(ptr %a) {", *lines, "}"]) for lines in (base, head))
    diff = stage_diff.compare("llir", *texts)
    telling, others = (
        [[diff.line(index).text.strip() for index in hunk] for hunk in hunks]
        for hunks in diff.telling_first(0)
    )
    assert [[text.split("@")[1][:17] for text in hunk] for hunk in telling] == [["llvm.nvvm.barrier"]]
    assert {text.split(" = ")[1][:4] for hunk in others for text in hunk} == {"fmul", "gete"}


NAME = "matmul/w:x@sm_90"


def launched(base, head, *metadata):
    """A run of one changed case, by the parts of its launches and its metadata."""
    sides = Sides(base=runs.launch(NAME, "base", **base), head=runs.launch(NAME, **head))
    case = runs.case(NAME, Verdict.CHANGED, launches=sides.map(lambda side: side.key))
    if metadata:
        case = replace(case, metadata=Sides(base=metadata[0], head=metadata[1]))
    return runs.run(case, launches={side.key: side for side in sides})


def changes(run):
    return [str(row) for row in launch_changes.of_case(run.cases[0], run)]


def test_nested_values_and_options_of_one_side(snapshot):
    base = {"options": {"num_warps": "4"}, "constexprs": {"BLOCK": "128"}}
    head = {"options": {"num_warps": "4", "clc": "x" * 500}, "constexprs": {"BLOCK": "256"}}
    metadata = (
        {"target": {"arch": 90, "dims": [1, 1]}, "shared": 0, "hash": "1", "num_warps": 4},
        {"target": {"arch": 91, "dims": [1, 2]}, "shared": 0, "hash": "2", "num_warps": 8},
    )
    run = launched(base, head, *metadata)
    assert changes(run) == snapshot
    same = replace(run.cases[0], verdict=Verdict.UNCHANGED)
    counted = launch_changes.of_run(replace(run, cases=(*run.cases * 2, same)))
    assert [(str(change), count) for change, count in counted] == [(change, 2) for change in changes(run)]


def test_loop_depth_through_backward_branches_and_nested_regions():
    branches = ["br label %1", "%1:", "x", "br i1 %2, label %1, label %3", "%3:", "y"]
    assert ir_of("llir").depths(branches) == [0, 1, 1, 1, 0, 0]
    text = "scf.for %1 = %2 to %3 {|scf.if %4 {|a|} else {|b|}|%5 = scf.while () {|c|} do {|d|}|}|e"
    assert ir_of("ttgir").depths(text.split("|")) == [0, 1, 1, 1, 1, 1, 1, 2, 1, 2, 1, 0, 0]


def test_alignment_is_exact_on_small_texts_and_bounded_on_huge_ones():
    rng = random.Random(7)
    base = [str(rng.randrange(40)) for _ in range(300)]
    head = [line for line in base if rng.random() > 0.1]
    pairs = alignment.matching(base, head)
    assert all(base[i] == head[j] for i, j in pairs)
    assert len(pairs) >= 0.95 * len(head)
    # a square of it would take longer than a test may
    alignment.matching([str(n % 977) for n in range(60_000)], [str(n % 983) for n in range(60_000)])


def test_what_makes_an_edit_this_change():
    for row in golden("diffs")["signature"]:
        assert abstraction.signature(Counter(row["lines"].split("|"))) == tuple(
            row["signature"].split("|")
        ), row


def test_a_line_in_other_registers_is_an_edit_of_these():
    for row in golden("diffs")["registers"]:
        found = abstraction.abstract(edits.between(row["ir"], [row["base"]], [row["head"]]))
        assert list(found) == [f"-{row['of']}", f"+{row['of']}"], row


def test_a_group_whose_control_bits_alone_differ_says_so_instead_of_a_diff(tmp_path, monkeypatch):
    case = runs.case(verdict=Verdict.CHANGED, origin=runs.origin("sass"))
    run, edit = runs.run(case), ["+sass: no text differs"]
    assert GroupDiffs(tmp_path, run).of(case, edit, 9) == ("+sass: no text differs",)
    monkeypatch.setattr(disassembly, "has_same_instructions", lambda *_: True)
    assert GroupDiffs(tmp_path, run).of(case, edit, 9) == (f" {disassembly.CONTROL_BITS}",)
