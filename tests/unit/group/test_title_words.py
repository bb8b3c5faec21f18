"""Each part of a title, by edits written down line by line."""

from __future__ import annotations

from typing import Any

import pytest

from irdiff.compare.edits import Edit
from irdiff.group import titles
from irdiff.model import Case, Failure, FailureKind, Origin, Sides, Verdict
from tests.unit.group.edits_of import added, edit, removed, replaced

CASE = "a/x:1@sm_90"


def case(build: Any, stage: str | None = "ttgir", *findings: str, **changes: Any) -> Case:
    origin = Origin(stage=stage, pass_name=None, healed=(), charged=(), note="") if stage else None
    made: Case = build.case(
        CASE, Verdict.CHANGED, origin=origin, findings=build.findings(*findings), **changes
    )
    return made


def title(build: Any, of: Edit | None, stage: str | None = None, *findings: str, **changes: Any) -> str:
    origin = stage or (of.stage if of else "sass")
    return titles.title(case(build, origin, *findings, **changes), of)


# failures


def failure(message: str) -> Failure:
    return Failure(kind=FailureKind.ERROR, stage="llir", message=message, signal=None, stderr="")


def test_what_breaks_and_what_is_fixed_say_where_and_why(build: Any) -> None:
    broken = build.case(CASE, Verdict.BROKEN, failures=Sides(base=None, head=failure("too large")))
    fixed = build.case(CASE, Verdict.FIXED, failures=Sides(base=failure("too large"), head=None))
    assert titles.title(broken, None) == "breaks in llir: too large"
    assert titles.title(fixed, None) == "is fixed in llir: too large"
    bare = build.case(CASE, Verdict.FIXED, failures=Sides(base=None, head=None))
    assert titles.title(bare, None) == "is fixed"
    long = build.case(CASE, Verdict.BROKEN, failures=Sides(base=None, head=failure("x" * 300)))
    assert len(titles.title(long, None)) == titles.MAX_TITLE


# what became more or fewer


def test_the_gravest_is_told_first_then_what_moved_most(build: Any) -> None:
    lines = [
        *[added("tt.other")] * 3,
        *[removed("tt.trans")] * 2,
        added("tt.load"),
        added("ttng.fence"),
    ]
    assert title(build, edit("ttgir", *lines)) == "+1 `ttng.fence`, +1 `tt.load`, 2 other operations"
    assert title(build, edit("ttgir", *lines[:6])) == "+1 `tt.load`, +3 `tt.other`, -2 `tt.trans`"
    assert title(build, edit("ttgir", *lines[:5])) == "+3 `tt.other`, -2 `tt.trans`"


def test_as_many_fewer_come_before_as_many_more(build: Any) -> None:
    assert title(build, edit("ttgir", added("tt.aaa"), removed("tt.zzz"))) == "-1 `tt.zzz`, +1 `tt.aaa`"


def test_net_counts_decide_the_order_not_how_often_a_line_was_touched(build: Any) -> None:
    lines = [*[removed("tt.aaa")] * 4, *[added("tt.aaa")] * 3, *[added("tt.zzz")] * 2]
    assert title(build, edit("ttgir", *lines)) == "+2 `tt.zzz`, -1 `tt.aaa`"


def test_casts_and_constants_are_told_last(build: Any) -> None:
    lines = [*[added("arith.constant")] * 3, *[added("arith.extf")] * 2, added("tt.other")]
    assert title(build, edit("ttgir", *lines)) == "+1 `tt.other`, +3 `arith.constant`, +2 `arith.extf`"


def test_three_operations_are_told_and_of_four_two(build: Any) -> None:
    names = ["tt.aa", "tt.bb", "tt.cc", "tt.dd"]
    assert title(build, edit("ttgir", *map(added, names[:3]))) == "+1 `tt.aa`, +1 `tt.bb`, +1 `tt.cc`"
    assert title(build, edit("ttgir", *map(added, names))) == "+1 `tt.aa`, +1 `tt.bb`, 2 other operations"


@pytest.mark.parametrize(
    ("depth", "where"),
    [
        (0, ""),
        (1, " in the loop body"),
        (2, " in the loop body (depth 2)"),
        (3, " in the loop body (depth 3)"),
    ],
)
def test_how_deep_in_loops(build: Any, depth: int, where: str) -> None:
    assert (
        title(build, edit("ttgir", added("tt.load"), removed("tt.load", depth=depth), added("tt.load")))
        == f"+1 `tt.load`{where}"
    )


LAYOUT_LINES = [
    line
    for n in range(3)
    for line in replaced(
        f"%{n} = arith.addf : tensor<4xf32, #ttg.blocked<{{order = [0]}}>>",
        f"%{n} = arith.addf : tensor<4xf32, #ttg.linear<{{order = [0]}}>>",
    )
]


def test_layouts_come_first_only_where_nothing_telling_became_more_or_fewer(build: Any) -> None:
    layouts = "layouts `#ttg.blocked` → `#ttg.linear`"
    assert title(build, edit("ttgir", *LAYOUT_LINES, added("tt.other"))) == f"{layouts}, +1 `tt.other`"
    assert title(build, edit("ttgir", *LAYOUT_LINES, added("tt.load"))) == "+1 `tt.load`"
    assert title(build, edit("ttgir", *LAYOUT_LINES)) == layouts


# what operations are called


@pytest.mark.parametrize(
    ("stage", "line", "name"),
    [
        ("llir", "%1 = load i32, ptr addrspace(3) %0", "`load shared`"),
        ("llir", "store i32 %1, ptr addrspace(1) %0", "`store global`"),
        ("llir", '%1 = call i32 asm sideeffect "ld.global.b32 $0;", "=r"()', "`asm ld.global.b32`"),
        ("llir", "%1 = fadd float %0, %0", "float instructions"),
        ("llir", "%1 = fptrunc float %0 to half", "float conversions instructions"),
        ("ptx", "cvt.rn.f16.f32 %rs1, %f1;", "conversions instructions"),
        ("amdgcn", "ds_bpermute_b32 v1, v2, v3", "lane exchange instructions"),
        ("ptx", "bar.sync 0;", "`bar.sync`"),
        (
            "ptx",
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r1};",
            "`mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32`",
        ),
        ("mlir", "%1 = llvm.load %0 : !llvm.ptr<3>", "`load shared`"),
        ("mlir", "llvm.store %1, %0 : !llvm.ptr<1>", "`store global`"),
        ("mlir", "nvvm.barrier0", "`nvvm.barrier0`"),
        ("mlir", "rocdl.s.barrier", "`rocdl.s.barrier`"),
        ("mlir", "%1 = llvm.call @f(%0)", "`call @f`"),
    ],
)
def test_an_operation_is_called_as_a_reader_knows_it(build: Any, stage: str, line: str, name: str) -> None:
    assert title(build, edit(stage, added(line))) == f"+1 {name}"


@pytest.mark.parametrize(
    ("stage", "line", "told"),
    [
        ("llir", "!1 = !{i32 1}", "lines"),
        ("llir", "@g = global i32 0", "lines"),
        ("llir", "declare void @f()", "lines"),
        ("llir", "attributes #0 = { nounwind }", "lines"),
        ("llir", "%1 = add i32 %0, 1", "lines"),
        ("ttgir", "module attributes {a = 1 : i32} {", "lines"),
        ("ttgir", "}", "lines"),
        ("mlir", "%1 = llvm.add %0, %0 : i32", "lines"),
        ("mlir", "%1 = nvvm.read.ptx.sreg.tid.x : i32", "lines"),
        ("mlir", "%1 = rocdl.workitem.id.x : i32", "lines"),
    ],
)
def test_what_every_change_touches_is_no_operation(build: Any, stage: str, line: str, told: str) -> None:
    assert "+1" not in title(build, edit(stage, added(line)))


# as many as before


def test_without_an_edit_the_stage_is_told(build: Any) -> None:
    assert title(build, None, "sass") == "other machine code from the same PTX"
    assert title(build, None, "amdgcn") == "other assembly"
    assert title(build, None, "llir") == "other LLVM IR"
    assert title(build, None, "npuasm") == "other NPUASM"
    assert titles.title(case(build, None), None) == "other CODE"


def test_what_is_known_beside_the_texts_is_told_first(build: Any) -> None:
    moved = edit("ttgir", removed("tt.load %0"), added("tt.load %1"))
    blind = title(build, None, "asm", "not-compared:asm,ttir")
    assert blind == "the code was not compared: the sides end in different stages"
    assert title(build, None, "launch", "launch-differs:a,b") == "the launch passes another a, b"
    assert title(build, None, "launch", "launch-differs:a:b") == "the launch passes another a:b"
    assert title(build, moved, "ttgir", "launch-differs:a,b") == "`tt.load` moved"
    assert title(build, None, "launch") == "other LAUNCH"
    told = "same text, the assembler allocated otherwise"
    assert title(build, None, "sass", "assembler-allocated-otherwise") == told


def test_the_same_instructions_below_mlir(build: Any) -> None:
    finding, told = "reordered-only", "the same instructions of the PTX in another order"
    assert title(build, edit("ptx", removed("mov.u32 %r1;"), added("mov.u32 %r2;")), "ptx", finding) == told
    moved = edit("ttgir", removed("tt.load %0"), added("tt.load %1"))
    assert title(build, moved, "ttgir", finding) == "`tt.load` moved"


# layouts


def layouts(build: Any, *pairs: tuple[str, str], others: int = 0) -> str:
    lines = [
        line
        for n, (before, after) in enumerate(pairs)
        for line in replaced(
            f"%{n} = arith.addf : tensor<4xf32{before}>", f"%{n} = arith.addf : tensor<4xf32{after}>"
        )
    ]
    more = [line for n in range(others) for line in (removed(f"tt.aa{n}"), added(f"tt.aa{n}"))]
    return title(build, edit("ttgir", *lines, *more))


BLOCKED, LINEAR, WIDE = ", #ttg.blocked<{a = [0]}>", ", #ttg.linear<{a = [0]}>", ", #ttg.blocked<{a = [1]}>"


def test_layouts_are_told_where_half_of_the_lines_or_more_differ_in_them(build: Any) -> None:
    assert layouts(build, (BLOCKED, LINEAR)) == "layouts `#ttg.blocked` → `#ttg.linear`"
    assert layouts(build, (BLOCKED, LINEAR), others=1) == "layouts `#ttg.blocked` → `#ttg.linear`"
    assert "layouts" not in layouts(build, (BLOCKED, LINEAR), others=2)
    assert layouts(build, (BLOCKED, WIDE)) == "`#ttg.blocked` layouts with other parameters"
    assert layouts(build, ("", BLOCKED)) == "`#ttg.blocked` layouts differ"
    assert layouts(build, (BLOCKED, "")) == "`#ttg.blocked` layouts differ"


def test_the_most_frequent_kind_is_told_and_no_slice_of_one(build: Any) -> None:
    slices = ", #ttg.slice<{dim = 0, parent = #ttg.wide<{a = [0]}>}>"
    assert layouts(build, (slices, LINEAR)) == "layouts `#ttg.wide` → `#ttg.linear`"
    other = ", #ttg.aaa<{a = [0]}>"
    told = layouts(build, (BLOCKED, LINEAR), (other, LINEAR), (BLOCKED, LINEAR))
    assert told == "layouts `#ttg.blocked` → `#ttg.linear`"


# attributes


def attribute(build: Any, *pairs: tuple[str, str]) -> str:
    return title(build, edit("ttgir", *[line for pair in pairs for line in replaced(*pair)]))


def test_an_attribute_is_told_by_name_and_value(build: Any) -> None:
    two, one = "%1 = ttg.async_wait %0 {num = 2 : i32}", "%1 = ttg.async_wait %0 {num = 1 : i32}"
    bare = "%1 = ttg.async_wait %0"
    assert attribute(build, (two, one)) == "`ttg.async_wait`: `num = 2` → `num = 1`"
    assert attribute(build, (bare, two)) == "`ttg.async_wait` with `num = 2 : i32`"
    assert attribute(build, (two, bare)) == "`ttg.async_wait` without `num = 2 : i32`"
    assert attribute(build, ("tt.op {a = X}", "tt.op {a = Y}")) == "`tt.op`: `a = X` → `a = Y`"
    assert attribute(build, ("tt.x = 1", "tt.x = 2")) == "`tt.x`: `tt.x = 1` → `tt.x = 2`"


def test_the_most_frequent_difference_is_told_beside_how_many_others(build: Any) -> None:
    pairs = [(f"tt.op{n} {{a = 1}}", f"tt.op{n} {{a = 2}}") for n in range(4)]
    told = "`tt.op1`: `a = 1` → `a = 2`"
    assert attribute(build, pairs[1]) == told
    assert attribute(build, pairs[0], pairs[1], pairs[1]) == f"{told} (beside another)"
    assert attribute(build, pairs[0], pairs[1], pairs[2], pairs[1]) == f"{told} (beside 2 others)"
    assert attribute(build, *pairs, pairs[1]) == f"{told} (beside 3 others)"
    assert attribute(build, pairs[2], pairs[1]) == f"{told} (beside another)", "else by name"


def test_code_in_a_title_does_not_end_its_backticks_and_is_cut(build: Any) -> None:
    assert attribute(build, ("tt.op {a = `x`}", "tt.op {a = 1}")) == "`tt.op`: `a = ' x '` → `a = 1`"
    assert attribute(build, ("tt.op {a = 1}", "tt.op {a = `x`}")) == "`tt.op`: `a = 1` → `a = ' x '`"
    long = attribute(build, ("tt.op {a = b}", f"tt.op {{a = {'c' * 90}}}"))
    assert long == f"`tt.op`: `a = b` → `a = {'c' * 56}`"


# flags and places


def test_flags_are_counted_by_how_many_more_lines_have_them(build: Any) -> None:
    def flags(*pairs: tuple[str, str], stage: str = "llir") -> str:
        return title(build, edit(stage, *[line for pair in pairs for line in replaced(*pair)]))

    def fadd(*words: str) -> str:
        return " ".join(["%1 = fadd", *words, "float %0, %0"])

    start = "flags and inferred attributes in the"
    places = "float instructions with other operands"
    assert flags((fadd("nnan"), fadd("ninf"))) == f"{start} LLVM IR: +1 `ninf`, -1 `nnan`, {places}"
    twice = flags((fadd("ninf"), fadd("nnan")), (fadd(), fadd("nnan")))
    assert twice == f"{start} LLVM IR: +2 `nnan`, -1 `ninf`, {places}"
    elsewhere = flags((fadd("nnan"), fadd()), (fadd(), fadd("nnan", "ninf")))
    assert elsewhere == f"{start} LLVM IR: +1 `ninf`, {places}"
    many = flags((fadd(), fadd("afn", "arcp", "contract", "fast")))
    assert many == f"{start} LLVM IR: +1 `afn`, +1 `arcp`, +1 `contract`, {places}"
    assert flags((fadd("nnan"), fadd()), (fadd(), fadd("nnan"))) == places
    rounding = flags(("add.rn.f32 %f1, %f2;", "add.rz.f32 %f1, %f2;"), stage="ptx")
    assert rounding.startswith(f"{start} PTX: -1 `rn`, +1 `rz`")


def test_flags_are_looked_for_in_every_line_that_has_a_partner(build: Any) -> None:
    alone = (removed("%1 = fadd float %0, %0"), added("%2 = fadd float %0, %0"))
    pair = replaced("%1 = fadd float %0, %0", "%1 = fadd nnan float %0, %0")
    assert "+1 `nnan`" in title(build, edit("llir", *alone, *pair))


def test_what_moved_is_told_before_what_takes_other_operands(build: Any) -> None:
    moved = [line for name in ("tt.aa", "tt.bb", "tt.bb") for line in (removed(name), added(name))]
    operands = [
        line for name in ("tt.yy", "tt.zz", "tt.zz") for line in replaced(f"{name} %0, %1", f"{name} %1, %0")
    ]
    assert title(build, edit("ttgir", *moved, *operands)) == "`tt.bb` and 1 more moved"
    assert title(build, edit("ttgir", *moved[:2])) == "`tt.aa` moved"
    assert title(build, edit("ttgir", *operands)) == "`tt.zz` and 1 more with other operands"
    assert title(build, edit("ttgir", *operands[:2])) == "`tt.yy` with other operands"


# classes


def test_lines_that_tell_nothing_are_told_by_their_classes(build: Any) -> None:
    def pairs(*lines: str) -> Edit:
        return edit("llir", *[line for text in lines for line in (removed(text), added(text))])

    integers, casts, moves = "%1 = add i32 %0, 1", "%1 = bitcast i32 %0 to float", "br label %3"
    assert title(build, pairs(integers)) == "other integer arithmetic in the LLVM IR"
    assert (
        title(build, pairs(integers, casts, casts))
        == "other addresses and casts and integer arithmetic in the LLVM IR"
    )
    three = title(build, pairs(integers, casts, moves, moves))
    assert three == "other control flow and addresses and casts in the LLVM IR"
    for line in ("llvm.add %0, %0 : i32", "nvvm.read.ptx.sreg.tid.x : i32", "rocdl.workitem.id.x : i32"):
        translated = edit("mlir", removed(f"%1 = {line}"), added(f"%2 = {line}"))
        assert title(build, translated, "llir") == "other integer arithmetic in the lowering to LLVM IR"
    assert title(build, edit("ttgir", removed("}"), added("}"))) == "other } in the TTGIR"
    assert title(build, edit("ttgir")) == "other lines in the TTGIR"


# facts


def test_facts_that_moved_follow_in_their_units(build: Any) -> None:
    facts = {
        "base": {"registers": 168, "shared_bytes": 1024},
        "head": {"registers": 255, "shared_bytes": 2048.0},
    }
    told = title(build, edit("ttgir", added("tt.load")), **facts)
    assert told == "+1 `tt.load`, shared memory 1024 → 2048 B, registers 168 → 255"
    words = {"base": {"registers": 1.5}, "head": {"registers": "many"}}
    assert title(build, edit("ttgir", added("tt.load")), **words) == "+1 `tt.load`, registers 1.5 → many"
    large = {"base": {"registers": 1234567.0}, "head": {"registers": 12345678}}
    assert (
        title(build, edit("ttgir", added("tt.load")), **large)
        == "+1 `tt.load`, registers 1.23457e+06 → 12345678"
    )


def test_a_part_that_just_fits_is_told(build: Any) -> None:
    fact = ", registers 1 → 2"
    name = "tt." + "x" * (titles.MAX_TITLE - len("+1 `tt.`") - len(fact))
    facts = {"base": {"registers": 1}, "head": {"registers": 2}}
    assert title(build, edit("ttgir", added(name)), **facts) == f"+1 `{name}`{fact}"
    assert title(build, edit("ttgir", added(name + "x")), **facts) == f"+1 `{name}x`"
