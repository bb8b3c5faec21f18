"""Statistics, and which machine codes differ in order and registers alone."""

from __future__ import annotations

import pytest

from irdiff.compare import statistics
from irdiff.compare.rescheduled import same_instructions, same_lines
from irdiff.compare.statistics import STATISTICS, Better
from tests.unit.report.test_recorded_runs import recorded


def test_real_compilations_have_the_facts_of_every_row() -> None:
    run = recorded("release")
    backends = {target.name: target.backend for target in run.targets}
    for row in STATISTICS:
        facts = [case.facts.head for case in run.cases if backends[case.target] == row.backend]
        assert any(row.of(side) is not None for side in facts), row


def test_a_direction_says_what_is_worse() -> None:
    worse = {Better.LESS: (True, False), Better.MORE: (False, True), Better.NEITHER: (False, False)}
    for row in STATISTICS:
        assert (row.worsened(1, 2), row.worsened(2, 1)) == worse[row.better]


def test_rows_by_name_or_fact_and_their_values() -> None:
    facts = {row.facts for row in statistics.named("occupancy")}
    assert facts == {("warps_per_multiprocessor",), ("waves_per_simd",)}
    (fact,) = statistics.named("kernarg_bytes")
    spills = next(row for row in STATISTICS if row.name == "spills")
    assert (fact.better, spills.of({}), spills.of({"spill_store_bytes": 4})) == (Better.LESS, None, 4)


# Words as ptxas makes them for sm_90.
FADD = 0x004FE20000000000_0000000304027221
"""`FADD R2, R4, R3`, with a stall of 2 and a wait."""
MOVE = 0x000FE200000F0200_0000000100057802
"""`MOV R5, 0x1`"""
RENAMED = FADD ^ (0x7 << 16) ^ (0x3 << 24) ^ (0x9 << 32)


def sections(*words: int, **data: bytes) -> dict[str, bytes]:
    code = b"".join(word.to_bytes(16, "little") for word in words)
    return {".text.KERNEL": code, **{f".nv.constant0.{name}": content for name, content in data.items()}}


@pytest.mark.parametrize(
    ("base", "head", "expected"),
    [
        (sections(FADD, MOVE), sections(MOVE, FADD), True),
        (sections(FADD), sections(RENAMED), True),
        (sections(FADD), sections(FADD ^ (0x5 << 105)), True),
        (sections(FADD), sections(FADD, FADD), False),
        (sections(FADD), sections(FADD ^ (1 << 80)), False),
        (sections(MOVE), sections(MOVE ^ (1 << 33)), False),
        (sections(FADD), sections(FADD ^ 1), False),
        (sections(FADD), sections(FADD ^ (1 << 15)), False),
        (sections(FADD, k=b"\1"), sections(FADD, k=b"\2"), False),
    ],
    ids=["order", "registers", "stall", "one more", "modifier", "constant", "opcode", "guard", "data"],
)
def test_instructions_of_nvidia_without_order_and_registers(base, head, expected: bool) -> None:
    assert same_instructions(base, head) is expected


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (["s_waitcnt vmcnt(0)", "v_add_f32_e32 v7, v2, v4"], True),
        (["s_waitcnt vmcnt(1)", "v_add_f32_e32 v1, v2, v3"], False),
        (["v_add_f32_e32 v1, v2, v3", "s_waitcnt vmcnt(0)", "s_nop 0"], False),
        (["v_add_f32_e32 v1, v2, s3", "s_waitcnt vmcnt(0)"], False),
    ],
)
def test_lines_of_amd_without_the_numbers_of_registers(head: list[str], expected: bool) -> None:
    assert same_lines(["v_add_f32_e32 v1, v2, v3", "s_waitcnt vmcnt(0)"], head) is expected
