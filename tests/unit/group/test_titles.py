"""The one line that says what a change is: of a case, and of all cases of a group."""

from __future__ import annotations

from typing import Any

import pytest

from irdiff.compare import edits
from irdiff.compare.edits import Edit, EditLine
from irdiff.group import titles
from irdiff.model import Case, Cause, Failure, FailureKind, Launch, Origin, Sides, StageStatus, Verdict
from tests.unit.group.edits_of import added, edit, removed, replaced
from tests.unit.group.test_causes import WRAP
from tests.unit.group.test_operation_names import ASSEMBLY

CASE = "a/x:1@sm_90"
NONE: Sides[Launch | None] = Sides(base=None, head=None)


def case(build: Any, stage: str | None = "ttgir", *findings: str, **changes: Any) -> Case:
    origin = Origin(stage=stage, pass_name=None, masked=(), charged=(), note="") if stage else None
    made: Case = build.case(
        CASE, Verdict.CHANGED, origin=origin, findings=build.findings(*findings), **changes
    )
    return made


def title(build: Any, of: Edit | None, stage: str | None = None, *findings: str, **changes: Any) -> str:
    subject = case(build, stage or (of.stage if of else "sass"), *findings, **changes)
    return titles.of_case(subject, titles.causes_of(subject, of, NONE))


def group(build: Any, *members: tuple[EditLine, ...], facts: list[tuple[int, int]] | None = None) -> str:
    rows: list[tuple[Case, tuple[Cause, ...]]] = []
    for lines, (before, after) in zip(members, facts or [(0, 0)] * len(members), strict=True):
        subject = case(build, base={"registers": before}, head={"registers": after})
        rows.append((subject, titles.causes_of(subject, edit("ttgir", *lines), NONE)))
    return titles.of_group(rows)


# failures


def failed(build: Any, verdict: Verdict, message: str | None, stage: str = "llir") -> Case:
    failure = (
        Failure(kind=FailureKind.ERROR, stage=stage, message=message, signal=None, stderr="")
        if message is not None
        else None
    )
    sides = Sides(base=None, head=failure) if verdict is Verdict.BROKEN else Sides(base=failure, head=None)
    made: Case = build.case(CASE, verdict, failures=sides)
    return made


def failure_title(*broken: Case) -> str:
    return titles.of_group([(row, titles.causes_of(row, None, NONE)) for row in broken])


def test_what_breaks_and_what_is_fixed_say_where_and_why(build: Any) -> None:
    assert failure_title(failed(build, Verdict.BROKEN, "too large")) == "no longer compiles (llir): too large"
    assert failure_title(failed(build, Verdict.FIXED, "too large")) == "compiles again (llir): too large"
    assert failure_title(failed(build, Verdict.FIXED, None)) == "compiles again"
    assert len(failure_title(failed(build, Verdict.BROKEN, "x" * 300))) == titles.MAX_TITLE


def test_a_workload_that_fails_before_any_compiler_no_longer_runs(build: Any) -> None:
    broken, fixed = (
        failed(build, verdict, "TypeError: f() missing 1 argument", "capture")
        for verdict in (Verdict.BROKEN, Verdict.FIXED)
    )
    assert failure_title(broken) == "the workload no longer runs: TypeError: f() missing 1 argument"
    assert failure_title(fixed) == "the workload runs again: TypeError: f() missing 1 argument"


def test_what_varies_between_the_reasons_of_a_group_is_left_open(build: Any) -> None:
    rows = [failed(build, Verdict.BROKEN, f"needs {n} bytes, has 9") for n in (1, 2)]
    assert failure_title(*rows) == "no longer compiles (llir): needs … bytes, has …"
    assert failure_title(rows[0], rows[0]) == "no longer compiles (llir): needs 1 bytes, has 9"


# one case, by real edits of 3.8.0 → 3.9.0


def between(stage: str, base: tuple[str, ...], head: tuple[str, ...]) -> Edit:
    start, *end = WRAP
    return edits.between(stage, [start, *base, *end], [start, *head, *end])


STORE = ASSEMBLY.format("@$0 st.shared::cta.v2.b32 [ $1 + 0 ], {$2, $3};")
LOAD = "@$9 ld.global.v4.b32 { $0, $1, $2, $3 }, [ $8 + 0 ];"
REAL = [
    (
        "mlir",
        ("%1 = llvm.call @__nv_umulhi(%0, %0) : (i32, i32) -> i32",) * 2,
        ("%1 = llvm.zext %0 : i32 to i64", "%2 = llvm.mul %1, %1 : i64", "%3 = llvm.mul %1, %1 : i64"),
        "calls of `__nv_umulhi` → `llvm.mul` (2×)",
    ),
    (
        "mlir",
        ("%9 = ttg.warp_id", STORE),
        ("llvm.store %1, %2 : vector<2xi32>, !llvm.ptr<3>",),
        "inline `st.shared::cta.v2.b32` → `store` to shared memory, one fewer `ttg.warp_id`",
    ),
    (
        "mlir",
        (ASSEMBLY.format(r"mov.u32 $0, $4;\0A\09" + LOAD),),
        (ASSEMBLY.format(LOAD),),
        "inline `ld.global.v4.b32` without the `mov.u32` before it",
    ),
    (
        "mlir",
        ("%1 = llvm.add %0, %0 : i32", "%2 = llvm.fdiv %0, %0 : f32"),
        ("llvm.fence syncscope(workgroup) release", "rocdl.s.barrier", "llvm.fence syncscope(workgroup) acquire"),
        "2 more `llvm.fence`, one more `rocdl.s.barrier`, one fewer `llvm.fdiv`",
    ),
    (
        "ttgir",
        ("%1 = ttg.async_wait %0 {num = 2 : i32}",),
        ("%1 = ttg.async_wait %0 {num = 1 : i32}",),
        "`ttg.async_wait`: `num` 2 → 1",
    ),
    (
        "ttgir",
        ("%1 = ttg.local_load %0 : !ttg.memdesc<64x64xf16>",),
        ("%1 = ttg.local_load %0 {ttg.amdg.syncedViaAsyncWait = false} : !ttg.memdesc<64x64xf16>",),
        "`ttg.local_load` with `ttg.amdg.syncedViaAsyncWait = false`",
    ),
    (
        "ttgir",
        ("%1 = arith.divf %0, %0 : f32",),
        ("%1 = tt.approx_divf %0, %0 : f32", "%2 = arith.mulf %1, %1 : f32"),
        "`arith.divf` → `tt.approx_divf`, one more `arith.mulf`",
    ),
    (
        "ttir",
        ("%1 = arith.constant dense<0.0> : tensor<16xf32>", "%2 = tt.dot %0, %0", "%3 = tt.trans %2"),
        ("%1 = tt.dot %0, %0", "%2 = tt.trans %1", "%3 = arith.constant dense<0.0> : tensor<16xf32>"),
        "`arith.constant` in another place",
    ),
    (
        "llir",
        ("define void @f(ptr addrspace(1) readnone %4, ptr addrspace(1) readnone %5) {",),
        ("define void @f(ptr addrspace(1) nofree readnone %4, ptr addrspace(1) nofree readnone %5) {",),
        "LLVM infers `nofree`, the LLVM IR is the same otherwise",
    ),
    (
        "llir",
        ("%1 = fmul float %0, %0", "%2 = fadd float %1, %0", "%3 = add i32 %0, 1"),
        ("%1 = fadd float %0, %0", "%2 = xor i32 %0, 1", "%3 = or i32 %0, 1"),
        "one fewer float instruction",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("stage", "base", "head", "wanted"), REAL, ids=[row[-1] for row in REAL])
def test_real_edits(
    build: Any, stage: str, base: tuple[str, ...], head: tuple[str, ...], wanted: str
) -> None:
    assert title(build, between(stage, base, head), "llir" if stage == "mlir" else stage) == wanted


def test_a_changed_option_is_the_headline(build: Any) -> None:
    subject = case(build)
    launches: Sides[Launch | None] = Sides(
        base=build.launch(CASE, options={"num_warps": "4"}),
        head=build.launch(CASE, options={"num_warps": "8"}),
    )
    found = titles.causes_of(subject, edit("ttgir", added("ttng.fence")), launches)
    assert titles.of_case(subject, found) == "`num_warps` 4 → 8, one more `ttng.fence`"


def test_without_an_edit_the_stage_is_told(build: Any) -> None:
    ptx = {"stages": {"ptx": StageStatus.IDENTICAL}}
    assert title(build, None, "sass", **ptx) == "same PTX, other machine code from `ptxas`"
    told = "what differs in PTX has no effect; other machine code from `ptxas`"
    assert title(build, None, "sass", stages={"ptx": StageStatus.CHANGED}) == told
    assert title(build, None, "amdgcn") == "other assembly"
    assert title(build, None, "npuasm") == "other NPUASM"
    assert titles.of_case(case(build, None), titles.causes_of(case(build, None), None, NONE)) == "other code"
    assert title(build, edit("llir"), "llir") == "other LLVM IR"


def test_what_is_known_beside_the_texts(build: Any) -> None:
    moved = edit("ttgir", removed("tt.load %0"), added("tt.load %1"))
    blind = title(build, None, "asm", "not-compared:asm,ttir")
    assert blind == "the code was not compared: the sides end in different stages"
    assert title(build, None, "launch", "launch-differs:a,b") == "the launch passes another a, b"
    assert title(build, moved, "ttgir", "launch-differs:a,b") == "`tt.load` in another place"
    allocated = title(
        build, None, "sass", "assembler-allocated-otherwise", base={"registers": 8}, head={"registers": 12}
    )
    assert allocated == "same PTX, `ptxas` allocates registers otherwise; registers 8 → 12"
    shuffled = edit("ptx", removed("mov.u32 %r1;"), added("mov.u32 %r2;"))
    assert title(build, shuffled, "ptx", "reordered-only") == "same instructions in another order"
    assert title(build, moved, "llir", "reordered-only") == "`tt.load` in another place", (
        "the pass says it best"
    )


# figures, and what fits


def test_figures_follow_and_do_not_say_what_the_causes_say(build: Any) -> None:
    facts = {
        "base": {"registers": 168, "spill_store_bytes": 0, "ttgir.convert_layout": 3},
        "head": {"registers": 255, "spill_store_bytes": 64, "ttgir.convert_layout": 5},
    }
    text = title(build, edit("ttgir", *[removed(f"tt.op{n}") for n in range(5)]), **facts)
    assert text == (
        "one fewer `tt.op0`, one fewer `tt.op1`, 3 other edits; "
        "`ttg.convert_layout` in TTGIR 3 → 5, spills 0 → 64 B, registers 168 → 255"
    )
    layouts = title(build, edit("ttgir", *[added("ttg.convert_layout")] * 2), **facts)
    assert layouts == "2 more `ttg.convert_layout`; spills 0 → 64 B, registers 168 → 255"


def test_barriers_that_another_pass_made_before_are_as_many(build: Any) -> None:
    """3.8 inserts barriers while it lowers, 3.9 in a pass of its own."""
    one = edit("mlir", added("ttg.barrier local"))
    same = {"base": {"amdgcn.barrier": 3}, "head": {"amdgcn.barrier": 3}}
    assert title(build, one, "llir", **same) == "one more `ttg.barrier`; as many `s_barrier` in the assembly"
    more = {"base": {"amdgcn.barrier": 3}, "head": {"amdgcn.barrier": 4}}
    assert title(build, one, "llir", **more) == "one more `ttg.barrier`; `s_barrier` 3 → 4"


def test_a_part_that_does_not_fit_is_left_out_whole_and_a_figure_before_the_last_cause(build: Any) -> None:
    facts = {"base": {"ptx.total": 3009}, "head": {"ptx.total": 2986}}
    lines = [removed(f"tt.{'long' * 15}{n} %0") for n in range(2)]
    text = title(build, edit("ttgir", *lines), **facts)
    assert text == f"one fewer `tt.{'long' * 15}0`; PTX instructions 3009 → 2986"
    assert title(build, edit("ttgir", *lines)).count("one fewer") == 2
    cut = title(build, edit("ttgir", *replaced("tt.op {a = b}", f"tt.{'op' * 90} {{a = c}}")))
    assert len(cut) <= titles.MAX_TITLE


def test_one_thing_told_twice_is_named_once(build: Any) -> None:
    pair = replaced(
        "llvm.store %0, %1 {alignment = 8 : i64} : !llvm.ptr<3>",
        "llvm.store %0, %1 {alignment = 4 : i64} : !llvm.ptr<3>",
    )
    text = title(build, edit("mlir", *pair, added("llvm.store %0, %1 : !llvm.ptr<3>")), "llir")
    assert text == "one more `store` to shared memory, others: `alignment` 8 → 4"


# several cases


def test_numbers_are_ranges(build: Any) -> None:
    one, two = (added("tt.load"),), (added("tt.load"), added("tt.load"))
    assert group(build, one, one) == "one more `tt.load`"
    assert group(build, one, two) == "1 to 2 more `tt.load`"
    assert group(build, (removed("tt.load"),), one) == "more or fewer `tt.load` (-1 … +1)"
    assert group(build, one, one, facts=[(8, 10), (8, 14)]) == "one more `tt.load`; registers +2 … +6"
    pair = (removed("arith.divf"), added("tt.approx_divf"))
    assert group(build, pair, pair * 3) == "`arith.divf` → `tt.approx_divf` (1 to 3×)"


def test_the_place_is_that_of_all_or_says_of_how_many(build: Any) -> None:
    inside, outside = (added("tt.load", depth=1),), (added("tt.load"),)
    assert group(build, inside, inside) == "one more `tt.load` in the loop"
    assert group(build, inside, outside, outside) == "one more `tt.load` (in the loop in 1 of 3 cases)"
    assert group(build, (*inside, *outside), (*inside, *inside)) == "2 more `tt.load` (partly in the loop)"
    assert group(build, (*inside, *outside)) == "2 more `tt.load` (1 in the loop)"


def test_what_synchronization_stands_before_is_told_where_it_is_one_or_two_things(build: Any) -> None:
    def fence(ahead: str) -> tuple[EditLine, ...]:
        return (added("ttng.fence", ahead=ahead),)

    hopper, blackwell = fence("ttng.warp_group_dot"), fence("ttng.tc_gen5_mma")
    assert group(build, hopper, hopper) == "one more `ttng.fence` before wgmma"
    assert group(build, hopper, blackwell) == "one more `ttng.fence` before tcgen05.mma or wgmma"
    assert group(build, hopper, blackwell, fence("tt.store")) == "one more `ttng.fence`"
    assert group(build, hopper, fence("")) == "one more `ttng.fence`"


def test_a_cause_that_not_all_have_says_how_many_do_and_a_rare_one_is_not_told(build: Any) -> None:
    both, plain = (added("ttng.fence"), added("tt.other")), (added("tt.other"),)
    assert group(build, both, both, plain) == "one more `tt.other`, one more `ttng.fence` (in 2 of 3 cases)"
    assert group(build, both, plain, plain) == "one more `tt.other`"
    strangers = [(added(f"tt.op{n}"),) for n in range(3)]
    assert group(build, *strangers) == "one more `tt.op0` (in 1 of 3 cases)"


def test_the_place_of_what_not_all_have_is_not_told_where_it_is_that_of_some(build: Any) -> None:
    inside, outside = (added("tt.load", depth=1), added("tt.other")), (added("tt.load"), added("tt.other"))
    text = group(build, inside, outside, (added("tt.other"),))
    assert text == "one more `tt.other`, one more `tt.load` (in 2 of 3 cases)"


def test_values_are_told_where_they_are_few(build: Any) -> None:
    def wait(count: int) -> tuple[EditLine, ...]:
        return replaced(f"ttg.async_wait {{num = {count}}}", "ttg.async_wait {num = 0}")

    assert group(build, wait(2), wait(2)) == "`ttg.async_wait`: `num` 2 → 0"
    assert group(build, wait(2), wait(3)) == "`ttg.async_wait`: `num` 2 → 0 or `num` 3 → 0"
    assert group(build, wait(1), wait(2), wait(3)) == "`ttg.async_wait`: other `num`"
    odd = replaced("ttg.async_wait eq", "ttg.async_wait ne")
    assert group(build, wait(1), wait(2), odd) == "`ttg.async_wait` otherwise"


def test_a_title_is_never_empty_and_always_bounded(build: Any) -> None:
    assert titles.of_group([(case(build), ())]) == "other code"
    members = [tuple(added(f"tt.{'name' * 40}{n}{k}") for k in range(9)) for n in range(3)]
    assert 0 < len(group(build, *members)) <= titles.MAX_TITLE
