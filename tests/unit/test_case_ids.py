"""What a user types to select: cases, workloads and targets; or an error that names what comes near."""

from pathlib import Path

import pytest

from irdiff import case_ids
from irdiff.backends.stages import check_compared
from irdiff.errors import CorpusError, UsageError
from irdiff.resolve import corpus, targets
from tests.unit.golden import golden

SHIPPED = Path(__file__).parents[2] / "targets"
GOLDEN = golden("case-ids")
WORKLOADS, LAUNCHES = GOLDEN["workloads"], GOLDEN["launches"]


def test_a_pattern_selects_cases():
    for row in GOLDEN["case"]:
        for pattern in (*row["selected_by"], *row["not_by"]):
            expected = pattern in row["selected_by"]
            assert case_ids.selects([pattern], row["id"]) is expected, pattern
            assert case_ids.unmatched([pattern], [row["id"]]) == ([] if expected else [pattern])
        assert case_ids.selects([], row["id"])


def launched(workloads):
    return [name for name in LAUNCHES if name.partition(":")[0] in workloads]


def completed(*patterns):
    return dict(case_ids.completed(patterns, WORKLOADS, launched, ["sm_90", "gfx942"]))


def test_a_part_of_a_name_is_completed():
    cases = [f"{launch}@{target}" for launch in LAUNCHES for target in ("sm_90", "gfx942")]
    for pattern, wanted in GOLDEN["completed"].items():
        assert list(completed(pattern)[pattern]) == wanted
        if pattern not in wanted:
            chosen = [name for name in cases if case_ids.selects(wanted, name)]
            assert chosen == case_ids.meant(pattern, cases), "as CASE of a run is read"


def test_a_name_that_fits_nothing_is_refused():
    for pattern, near in GOLDEN["near"].items():
        with pytest.raises(UsageError, match="matches no case") as raised:
            completed(pattern)
        assert near in raised.value.hint


def selected(names, patterns):
    return [target.name for target in targets.selected(names, patterns, [SHIPPED])]


def test_targets_that_no_pattern_means_are_left_out():
    assert selected([], []) == ["sm_90", "sm_100", "gfx942", "gfx950"]
    assert selected([], ["matmul@gfx9*", "softmax@sm_100"]) == ["sm_100", "gfx942", "gfx950"]
    assert selected([], ["matmul@sm_80"]) == ["sm_80"], "one that is known, and no default"
    assert selected(["gfx942"], ["matmul"]) == ["gfx942"]


def test_a_target_or_a_stage_that_is_none_is_refused():
    for names, patterns, hint in (
        ([], ["matmul@sm90"], "did you mean sm_90?"),
        (["gfx942"], ["matmul@sm_90"], "leaves out what --case names"),
    ):
        with pytest.raises(UsageError) as raised:
            selected(names, patterns)
        assert hint in raised.value.hint
    check_compared(["ttgir", "sass"], ["cuda", "hip"])
    check_compared(["asm"], ["npu"])
    with pytest.raises(UsageError) as raised:
        check_compared(["tgir"], ["cuda"])
    assert raised.value.hint == "did you mean ttgir?"


def test_workloads_of_a_folder(tmp_path):
    with pytest.raises(CorpusError, match="no workload"):
        corpus.load(tmp_path)
    for name in ("a/x.py", "a/y.py", "b/z.py", "b/_helper.py", "b/README.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("LAUNCHES = {}")
    found = corpus.load(tmp_path)
    assert found.workloads == ("a/x", "a/y", "b/z")
    (tmp_path / "b/README.md").write_text("changed")
    assert corpus.load(tmp_path).digest == found.digest
    (tmp_path / "b/_helper.py").write_text("changed")
    assert corpus.load(tmp_path).digest != found.digest


def test_shipped_targets():
    found = targets.load_all([SHIPPED])
    assert set(targets.DEFAULT) <= set(found)
    for target in found.values():
        assert set(target.facts) == set(target.sources), f"{target.name}: every figure has its source"


def test_a_file_adds_a_target(tmp_path):
    (tmp_path / "xpu.toml").write_text('backend = "xpu"\narch = "pvc"\nwarp_size = 16\n')
    assert targets.select(["xpu"], [SHIPPED, tmp_path])[0].backend == "xpu"
    with pytest.raises(UsageError, match="sm_1"):
        targets.select(["sm_1"], [SHIPPED])
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        targets.load(tmp_path / "zpu.toml")
