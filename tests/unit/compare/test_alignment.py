"""What edits are found with: alignment, depths of loops, and the lines that make an edit this change."""

import random
import time
from collections import Counter

from irdiff.compare import abstraction, alignment, edits, loops
from tests.unit.golden import golden


def test_loop_depth_through_backward_branches_and_nested_regions():
    branches = ["br label %1", "%1:", "x", "br i1 %2, label %1, label %3", "%3:", "y"]
    assert loops.depths(branches) == [0, 1, 1, 1, 0, 0]
    text = "scf.for %1 = %2 to %3 {|scf.if %4 {|a|} else {|b|}|%5 = scf.while () {|c|} do {|d|}|}|e"
    assert loops.depths(text.split("|")) == [0, 1, 1, 1, 1, 1, 1, 2, 1, 2, 1, 0, 0]


def test_alignment_is_exact_on_small_texts_and_bounded_on_huge_ones():
    rng = random.Random(7)
    base = [str(rng.randrange(40)) for _ in range(300)]
    head = [line for line in base if rng.random() > 0.1]
    pairs = alignment.matching(base, head)
    assert all(base[i] == head[j] for i, j in pairs)
    assert len(pairs) >= 0.95 * len(head)
    began = time.monotonic()
    alignment.matching([str(n % 977) for n in range(60_000)], [str(n % 983) for n in range(60_000)])
    assert time.monotonic() - began < 10


def test_what_makes_an_edit_this_change():
    for row in golden("diffs")["essence"]:
        assert abstraction.essence(Counter(row["lines"].split("|"))) == tuple(row["essence"].split("|")), row


def test_a_line_in_other_registers_is_an_edit_of_these():
    for row in golden("diffs")["registers"]:
        found = abstraction.abstract(edits.between(row["ir"], [row["base"]], [row["head"]]))
        assert list(found) == [f"-{row['of']}", f"+{row['of']}"], row
