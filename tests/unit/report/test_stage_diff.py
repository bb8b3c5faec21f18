from __future__ import annotations

from irdiff.diffs import stage_diff
from irdiff.diffs.renumbering import Kind

BASE = """\
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [2, 16], order = [1, 0]}>
module {
  tt.func public @kernel(%x: !tt.ptr<f16>) {
    %c = arith.constant dense<1.0> : tensor<32x128xf16, #blocked>
    %d = arith.addf %c, %c : tensor<32x128xf16, #blocked>
    tt.return
  }
}
"""
HEAD = BASE.replace("    tt.return", "    ttng.fence_async_shared {bCluster = false}\n    tt.return").replace(
    "arith.addf %c, %c", "arith.mulf %c, %c"
)


def test_changed_lines_have_raw_numbers_and_marks() -> None:
    diff = stage_diff.compare("ttgir", BASE, HEAD)
    lines = [diff.line(i) for i, row in enumerate(diff.rows) if row.kind is not Kind.SAME]
    removed, added, fence = lines
    assert (removed.base_number, removed.head_number) == (5, 0)
    assert (added.base_number, added.head_number) == (0, 5)
    assert removed.text.startswith("%2 = arith.addf") or "arith.addf" in removed.text
    assert [removed.text[a:b] for a, b in removed.marks] == ["arith.addf"]
    assert "arith.addf %c, %c" in removed.raw
    assert fence.text == "ttng.fence_async_shared {bCluster = false}"


def test_layouts_have_short_names_with_a_legend() -> None:
    diff = stage_diff.compare("ttgir", BASE, HEAD)
    ((short, full),) = diff.legend
    assert short == "#blocked.1"
    assert "sizePerThread = [1, 8]" in full
    assert any(short in diff.line(i).text for i in range(len(diff.rows)))


def test_another_layout_is_another_short_name() -> None:
    diff = stage_diff.compare("ttgir", BASE, BASE.replace("[1, 8]", "[1, 4]"))
    changed = [diff.line(i) for i, row in enumerate(diff.rows) if row.kind is not Kind.SAME]
    assert changed
    assert all("#blocked." in line.text for line in changed)
    assert len(diff.legend) == 2


def test_hunks_hold_every_change_with_its_context() -> None:
    diff = stage_diff.compare("ttgir", BASE, HEAD)
    (hunk,) = diff.hunks(1)
    kinds = [diff.rows[i].kind for i in hunk]
    assert kinds[0] is Kind.SAME
    assert kinds[-1] is Kind.SAME
    assert kinds.count(Kind.REMOVED) == 1
    assert kinds.count(Kind.ADDED) == 2


def test_lines_are_cleaned() -> None:
    diff = stage_diff.compare("ttgir", BASE, HEAD.replace("bCluster", 'name = "\u202eevil", bCluster'))
    assert not any("\u202e" in diff.line(i).text + diff.line(i).raw for i in range(len(diff.rows)))
