"""The one line that says what a change is: of a case, and of all cases of a group."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from irdiff.compare import edits
from irdiff.compare.edits import Edit, EditLine
from irdiff.group import titles
from irdiff.model import Case, CauseKind, Launch, Sides, StageStatus, Verdict
from tests.unit import runs
from tests.unit.group.edits_of import added, edit, removed, replaced
from tests.unit.group.test_causes import WRAP
from tests.unit.group.test_operation_names import ASSEMBLY

CASE = "a/x:1@sm_90"
NONE: Sides[Launch | None] = Sides(base=None, head=None)


def case(stage: str | None = "ttgir", *findings: str, **changes: Any) -> Case:
    origin = runs.origin(stage) if stage else None
    return runs.case(CASE, Verdict.CHANGED, origin=origin, findings=runs.findings(*findings), **changes)


def title(of: Edit | None, stage: str | None = None, *findings: str, **changes: Any) -> str:
    subject = case(stage or (of.stage if of else "sass"), *findings, **changes)
    return titles.of_case(subject, titles.causes_of(subject, of, NONE))


def group(*members: tuple[EditLine, ...], facts: list[tuple[int, int]] | None = None) -> str:
    rows = []
    for lines, (before, after) in zip(members, facts or [(0, 0)] * len(members), strict=True):
        subject = case(base={"registers": before}, head={"registers": after})
        rows.append((subject, titles.causes_of(subject, edit("ttgir", *lines), NONE)))
    return titles.of_group(rows)


# failures


def failing(verdict: Verdict, *messages: str, stage: str = "llir") -> str:
    """The title of cases that fail, or failed, with these messages."""
    rows = []
    for message in messages:
        failure = replace(runs.FAILURE, stage=stage, message=message)
        broken = verdict is Verdict.BROKEN
        sides = Sides(base=None if broken else failure, head=failure if broken else None)
        rows.append(runs.case(CASE, verdict, failures=sides))
    return titles.of_group([(row, titles.causes_of(row, None, NONE)) for row in rows])


def test_what_breaks_and_what_is_fixed_say_where_and_why() -> None:
    assert failing(Verdict.BROKEN, "too large") == "no longer compiles (llir): too large"
    assert failing(Verdict.FIXED, "too large") == "compiles again (llir): too large"
    assert failing(Verdict.BROKEN, "TypeError: f()", stage="capture").startswith(
        "the workload no longer runs: T"
    )
    assert failing(Verdict.FIXED, "TypeError: f()", stage="capture").startswith("the workload runs again: T")
    assert len(failing(Verdict.BROKEN, "x" * 300)) == titles.MAX_TITLE
    unknown = runs.case(CASE, Verdict.FIXED, failures=Sides(base=None, head=None))
    assert titles.of_case(unknown, titles.causes_of(unknown, None, NONE)) == "compiles again"


def test_what_varies_between_the_reasons_of_a_group_is_left_open() -> None:
    rows = [f"needs {n} bytes, has 9" for n in (1, 2)]
    assert failing(Verdict.BROKEN, *rows).endswith(": needs … bytes, has …")
    assert failing(Verdict.BROKEN, rows[0], rows[0]).endswith(": needs 1 bytes, has 9")


# one case, by real edits of 3.8.0 → 3.9.0


STORE = ASSEMBLY.format("@$0 st.shared::cta.v2.b32 [ $1 + 0 ], {$2, $3};")
LOAD = "@$9 ld.global.v4.b32 { $0, $1, $2, $3 }, [ $8 + 0 ];"
REAL = [
    (
        "mlir",
        ("%1 = llvm.call @__nv_umulhi(%0, %0) : (i32, i32) -> i32",) * 2,
        ("%1 = llvm.zext %0 : i32 to i64", "%2 = llvm.mul %1, %1 : i64", "%3 = llvm.mul %1, %1 : i64"),
        "2 fewer calls of `__nv_umulhi`",
    ),
    (
        "mlir",
        ("%9 = ttg.warp_id", STORE),
        ("llvm.store %1, %2 : vector<2xi32>, !llvm.ptr<3>",),
        "one more `store` to shared memory, one fewer inline `st.shared::cta.v2.b32`, one fewer `ttg.warp_id`",
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
        "one fewer `arith.divf`, one more `tt.approx_divf`, one more `arith.mulf`",
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
def test_real_edits(stage: str, base: tuple[str, ...], head: tuple[str, ...], wanted: str) -> None:
    start, *end = WRAP
    of = edits.between(stage, [start, *base, *end], [start, *head, *end])
    assert title(of, "llir" if stage == "mlir" else stage) == wanted


def test_a_changed_option_is_the_headline() -> None:
    launches = (runs.launch(CASE, options={"num_warps": count}) for count in ("4", "8"))
    found = titles.causes_of(
        case(), edit("ttgir", added("ttng.fence")), Sides(base=next(launches), head=next(launches))
    )
    assert titles.of_case(case(), found) == "`num_warps` 4 → 8, one more `ttng.fence`"


MOVED = edit("ttgir", removed("tt.load %0"), added("tt.load %1"))
SHUFFLED = edit("ptx", removed("mov.u32 %r1;"), added("mov.u32 %r2;"))


@pytest.mark.parametrize(
    ("of", "stage", "finding", "words"),
    [
        (None, "sass", "", "same PTX"),
        (None, "amdgcn", "", "other assembly"),
        (None, "npuasm", "", "other NPUASM"),
        (edit("llir"), "llir", "", "other LLVM IR"),
        (None, "asm", "not-compared:asm,ttir", "not compared"),
        (None, "launch", "launch-differs:a,b", "another a, b"),
        (MOVED, "ttgir", "launch-differs:a,b", "in another place"),
        (None, "sass", "assembler-allocated-otherwise", "same PTX, `ptxas` allocates"),
        (SHUFFLED, "ptx", "reordered-only", "same instructions in another order"),
        (MOVED, "llir", "reordered-only", "in another place"),  # the pass says it best
    ],
)
def test_what_is_known_beside_the_texts(of: Edit | None, stage: str, finding: str, words: str) -> None:
    assert words in title(of, stage, *filter(None, [finding]), stages={"ptx": StageStatus.IDENTICAL})


def test_a_difference_in_ptx_without_effect_and_no_stage_at_all() -> None:
    assert "same PTX" not in title(None, "sass", stages={"ptx": StageStatus.CHANGED})
    assert titles.of_case(case(None), titles.causes_of(case(None), None, NONE)) == "other code"
    assert titles.of_group([(case(), ())]) == "other code"


# figures, and what fits


FACTS = {
    "base": {"registers": 168, "spill_store_bytes": 0, "ttgir.convert_layout": 3},
    "head": {"registers": 255, "spill_store_bytes": 64, "ttgir.convert_layout": 5},
}


def test_figures_follow_and_do_not_say_what_the_causes_say() -> None:
    assert title(edit("ttgir", *[removed(f"tt.op{n}") for n in range(5)]), **FACTS) == (
        "one fewer `tt.op0`, one fewer `tt.op1`, 3 other edits; "
        "`ttg.convert_layout` in TTGIR 3 → 5, spills 0 → 64 B, registers 168 → 255"
    )
    layouts = title(edit("ttgir", *[added("ttg.convert_layout")] * 2), **FACTS)
    assert layouts == "2 more `ttg.convert_layout`; spills 0 → 64 B, registers 168 → 255"


@pytest.mark.parametrize(
    ("head", "words"), [(3, "as many `s_barrier` in the assembly"), (4, "`s_barrier` 3 → 4")]
)
def test_barriers_that_another_pass_made_before_are_as_many(head: int, words: str) -> None:
    """3.8 inserts barriers while it lowers, 3.9 in a pass of its own."""
    facts = {"base": {"amdgcn.barrier": 3}, "head": {"amdgcn.barrier": head}}
    text = title(edit("mlir", added("ttg.barrier local")), "llir", **facts)
    assert text == f"one more `ttg.barrier`; {words}"


def test_a_part_that_does_not_fit_is_left_out_whole_and_a_figure_before_the_last_cause() -> None:
    facts = {"base": {"ptx.total": 3009}, "head": {"ptx.total": 2986}}
    lines = [removed(f"tt.{'long' * 15}{n} %0") for n in range(2)]
    text = title(edit("ttgir", *lines), **facts)
    assert text == f"one fewer `tt.{'long' * 15}0`; instructions 3009 → 2986"
    assert title(edit("ttgir", *lines)).count("one fewer") == 2
    cut = title(edit("ttgir", *replaced("tt.op {a = b}", f"tt.{'op' * 90} {{a = c}}")))
    assert len(cut) <= titles.MAX_TITLE
    members = [tuple(added(f"tt.{'name' * 40}{n}{k}") for k in range(9)) for n in range(3)]
    assert 0 < len(group(*members)) <= titles.MAX_TITLE


def test_one_thing_named_twice_is_called_others() -> None:
    pair = replaced(
        *(f"llvm.store %0, %1 {{alignment = {n} : i64}} : !llvm.ptr<3>" for n in (8, 4)),
    )
    text = title(edit("mlir", *pair, added("llvm.store %0, %1 : !llvm.ptr<3>")), "llir")
    assert text == "one more `store` to shared memory, others: `alignment` 8 → 4"


# several cases


def fence(ahead: str) -> tuple[EditLine, ...]:
    return (added("ttng.fence", ahead=ahead),)


def wait(count: int) -> tuple[EditLine, ...]:
    return replaced(f"ttg.async_wait {{num = {count}}}", "ttg.async_wait {num = 0}")


IN, OUT = (added("tt.load", depth=1),), (added("tt.load"),)
OTHER = (added("tt.other"),)
PAIR = (removed("arith.divf"), added("tt.approx_divf"))
HOPPER, BLACKWELL = fence("ttng.warp_group_dot"), fence("ttng.tc_gen5_mma")
BOTH = (added("ttng.fence"), *OTHER)
ODD = replaced("ttg.async_wait eq", "ttg.async_wait ne")
GROUPS = [
    ((OUT, OUT), "one more `tt.load`"),
    ((OUT, OUT * 2), "1 to 2 more `tt.load`"),
    (((removed("tt.load"),), OUT), "more or fewer `tt.load` (-1 … +1)"),
    ((PAIR, PAIR * 3), "1 to 3 fewer `arith.divf`, 1 to 3 more `tt.approx_divf`"),
    ((IN, IN), "one more `tt.load` in the loop"),
    ((IN, OUT, OUT), "one more `tt.load` (in the loop in 1 of 3 cases)"),
    (((*IN, *OUT), IN * 2), "2 more `tt.load` (partly in the loop)"),
    (((*IN, *OUT),), "2 more `tt.load` (1 in the loop)"),
    ((HOPPER, HOPPER), "one more `ttng.fence` before wgmma"),
    ((HOPPER, BLACKWELL), "one more `ttng.fence` before tcgen05.mma or wgmma"),
    ((HOPPER, BLACKWELL, fence("tt.store")), "one more `ttng.fence`"),
    ((HOPPER, fence("")), "one more `ttng.fence`"),
    ((BOTH, BOTH, OTHER), "one more `tt.other`, one more `ttng.fence` (in 2 of 3 cases)"),
    ((BOTH, OTHER, OTHER), "one more `tt.other`"),
    (tuple((added(f"tt.op{n}"),) for n in range(3)), "one more `tt.op0` (in 1 of 3 cases)"),
    (((*IN, *OTHER), (*OUT, *OTHER), OTHER), "one more `tt.other`, one more `tt.load` (in 2 of 3 cases)"),
    ((wait(2), wait(2)), "`ttg.async_wait`: `num` 2 → 0"),
    ((wait(2), wait(3)), "`ttg.async_wait`: `num` 2 → 0 or `num` 3 → 0"),
    ((wait(1), wait(2), wait(3)), "`ttg.async_wait`: other `num`"),
    ((wait(1), wait(2), ODD), "`ttg.async_wait` with other values"),
]


@pytest.mark.parametrize(("members", "wanted"), GROUPS, ids=[wanted for _, wanted in GROUPS])
def test_a_title_holds_for_all_members(members: tuple[tuple[EditLine, ...], ...], wanted: str) -> None:
    assert group(*members) == wanted


def test_the_risk_of_one_case_leads_the_title_of_its_group() -> None:
    (fence,) = titles.causes_of(case(), edit("ttgir", added("ttng.fence_async_shared")), NONE)
    risk = replace(fence, kind=CauseKind.EFFECT, subject="`bar.sync` is gone", count=1)
    rows = [(case(), (fence,)), (case(), (fence,)), (case(), (risk, fence))]
    words = titles.of_group(rows)
    assert words.startswith("`bar.sync` is gone (in 1 of 3 cases), one more ")


def test_figures_of_a_group_are_ranges() -> None:
    assert group(OUT, OUT, facts=[(8, 10), (8, 14)]) == "one more `tt.load`; registers +2 … +6"
