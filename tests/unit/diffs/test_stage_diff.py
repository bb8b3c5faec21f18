from irdiff.diffs import stage_diff
from irdiff.diffs.renumbering import Kind
from tests.unit.runs import TTGIR as BASE
from tests.unit.runs import TTGIR_AT_HEAD as HEAD


def changed(base, head):
    diff = stage_diff.compare("ttgir", base, head)
    return [diff.line(index) for index, row in enumerate(diff.rows) if row.kind is not Kind.SAME]


def test_changed_lines_have_raw_numbers_and_marks():
    removed, added, fence = changed(BASE, HEAD)
    assert (removed.base_number, removed.head_number) == (5, 0)
    assert (added.base_number, added.head_number) == (0, 5)
    assert [removed.text[start:end] for start, end in removed.marks] == ["arith.addf"]
    assert "arith.addf %c, %c" in removed.raw
    assert fence.text == "ttng.fence_async_shared {bCluster = false}"


def test_each_layout_has_a_short_name_of_its_own_with_a_legend():
    ((short, full),) = stage_diff.compare("ttgir", BASE, HEAD).legend
    assert short == "#blocked.1"
    assert "sizePerThread = [1, 8]" in full
    assert any(short in line.text for line in changed(BASE, HEAD))
    other = BASE.replace("[1, 8]", "[1, 4]")
    assert len(stage_diff.compare("ttgir", BASE, other).legend) == 2
    assert all("#blocked." in line.text for line in changed(BASE, other))


def test_hunks_hold_every_change_with_its_context():
    lines = [str(number) for number in range(30)]
    far = stage_diff.of_lines("launch", lines, [*lines[:5], "x", *lines[5:20], "y", *lines[20:]])
    assert [(rows.start, rows.stop) for rows in far.hunks(2)] == [(3, 8), (19, 24)]


def test_lines_are_cleaned():
    for line in changed(BASE, HEAD.replace("bCluster", 'name = "\u202eevil", bCluster')):
        assert "\u202e" not in line.text + line.raw
