"""What counts between two small texts: loops, order, barriers, lanes, arithmetic, what is not understood."""

import itertools
import random

import pytest

from irdiff import effects
from irdiff.effects.values import Values
from irdiff.model import Bits, EffectClass
from irdiff.stages import Stage
from tests.programs.effect_rewrites import REWRITES, STAGES, mutations, texts

MOTION, UNKNOWN, SYNC = EffectClass.MOTION, EffectClass.UNKNOWN, EffectClass.SYNCHRONIZATION
MEMORY, COST, CONTROL, FLOAT = EffectClass.MEMORY, EffectClass.COST, EffectClass.CONTROL, EffectClass.FLOAT


def ptx(*body):
    return [".target sm_90a", ".visible .entry k(", ")", "{", ".reg .b32 %r<>;", *body, "ret;", "}"]


def amdgcn(*body):
    return [".text", ".type k,@function", "k:", *body, "s_endpgm", '.section .rodata,"a",@progbits']


def of_ptx(base, head):
    return effects.compare(Stage.PTX, ptx(*base), ptx(*head)).kind


def loop(i, s, v, *replaced):
    text = (
        f"mov.b32 {i}, 0;\nmov.b32 {s}, 0;\n$L0:\nld.global.b32 {v}, [%rd0];\nadd.s32 {s}, {s}, {v};\nadd.s32 {i}, {i}, 1;\n"
        f"setp.lt.s32 %p0, {i}, %r9;\n@%p0 bra $L0;\nst.global.b32 [%rd1], {s};"
    )
    for old, new in zip(replaced[::2], replaced[1::2], strict=True):
        text = text.replace(old, new)
    return tuple(text.split("\n"))


LOOP = "%r0", "%r1", "%r2"


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (loop("%r5", "%r6", "%r7"), MOTION),
        (loop("%r1", "%r0", "%r2"), MOTION),
        (loop(*LOOP, "setp.lt", "setp.le"), CONTROL),
        (loop(*LOOP, "[%rd1], %r1", "[%rd1], %r0"), UNKNOWN),
        (loop(*LOOP, ", %r0, 1;", ", %r0, 2;"), CONTROL),
        (loop(*LOOP, "@%p0", "@!%p0"), UNKNOWN),
    ],
)
def test_a_loop_is_the_same_whatever_its_registers_are_called(head, kind):
    assert of_ptx(loop(*LOOP), head) is kind


STORES = ("st.shared.b32 [%r0], %r1;", "st.shared.b32 [%r0+4], %r2;")
BAR, LOAD, USE = "bar.sync 0;", "ld.shared.b32 %r3, [%r0+8];", "st.global.b32 [%rd0], %r3;"
AGAIN = LOAD.replace("%r3", "%r4")
OTHER = "st.shared.b32 [%r7], %r2;"


@pytest.mark.parametrize(
    ("base", "head", "kind"),
    [
        ((*STORES, BAR, LOAD, USE), (STORES[1], STORES[0], BAR, LOAD, USE), MOTION),
        ((*STORES, BAR, LOAD, USE), (*STORES, LOAD, BAR, USE), SYNC),
        ((*STORES, BAR, LOAD, USE), (STORES[0], BAR, STORES[1], LOAD, USE), SYNC),
        ((*STORES, BAR, LOAD, USE), (*STORES, LOAD, USE), SYNC),
        ((*STORES, BAR, LOAD, USE), (*STORES, "bar.sync 1;", LOAD, USE), SYNC),
        ((*STORES, BAR, LOAD, USE), (STORES[0], BAR, LOAD, USE), MEMORY),
        ((*STORES, LOAD, USE), (*STORES, BAR, LOAD, USE), COST),
        ((*STORES, BAR, BAR, LOAD, USE), (*STORES, BAR, LOAD, USE), COST),
        ((*STORES, BAR, "bar.sync 1;", LOAD, USE), (*STORES, "bar.sync 1;", LOAD, USE), SYNC),
        ((STORES[0], OTHER), (OTHER, STORES[0]), UNKNOWN),
        ((STORES[0], STORES[0].replace("%r1", "%r2")), (STORES[0].replace("%r1", "%r2"), STORES[0]), MEMORY),
        ((LOAD, USE, AGAIN, OTHER), (LOAD, AGAIN, USE, OTHER), MOTION),
        ((LOAD, OTHER, AGAIN, USE), (LOAD, AGAIN, OTHER, USE), UNKNOWN),
    ],
)  # fmt: skip
def test_what_cannot_meet_has_no_order(base, head, kind):
    assert of_ptx(base, head) is kind


MMA = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%r1, %r2, %r3, %r4}, %rd2, %rd3, 0, 1, 1;"
COPIED = (MMA, "mov.b32 %r7, %r1;", "wgmma.wait_group.sync.aligned 0;", "st.global.b32 [%rd0], %r7;")


def test_a_copy_of_what_a_matrix_unit_writes_waits_as_well():
    assert of_ptx(COPIED, (*COPIED[:2], COPIED[3], COPIED[2])) is UNKNOWN


@pytest.mark.parametrize(("less", "kind"), [("lo.u32", MOTION), ("le.u32", CONTROL)])
def test_orders_of_unsigned_numbers_have_two_names(less, kind):
    assert of_ptx(loop(*LOOP, "lt.s32", "lt.u32"), loop(*LOOP, "lt.s32", less)) is kind


@pytest.mark.parametrize(
    ("base", "head", "kind"),
    [((1, 3, 5), (2, 4, 6), MEMORY), ((1, 3), (2, 5), MEMORY), ((1, 3, 5), (2, 5, 8), UNKNOWN)],
)
def test_other_constants_by_several_distances_may_be_other_elements(base, head, kind):
    def stores(numbers):
        pairs = (
            (f"add.s32 %r1, %r9, {n};", f"st.global.b32 [%rd{at}], %r1;") for at, n in enumerate(numbers)
        )
        return tuple(itertools.chain(*pairs))

    assert of_ptx(stores(base), stores(head)) is kind


@pytest.mark.parametrize(
    ("mul", "bits"), [("mul.f32", Bits.UNKNOWN), ("mul.rn.f32", Bits.SAME), ("mul.lo.s32", Bits.SAME)]
)
def test_what_may_be_contracted_has_no_known_bits(mul, bits):
    base = ptx(f"{mul} %r1, %r2, %r3;", "add.f32 %r4, %r1, %r5;", "st.global.b32 [%rd0], %r4;")
    assert effects.compare(Stage.PTX, base, [line.replace("%r4", "%r8") for line in base]).bits is bits


TENSOR = (
    "tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r1, %r2}, [%r0 + 0];", "tcgen05.wait::ld.sync.aligned;",
    "st.global.b32 [%rd1], %r1;", "tcgen05.st.sync.aligned.32x32b.x2.b32 [%r0 + 8], {%r3, %r4};",
)  # fmt: skip
SAME_COLUMNS = (*TENSOR[:3], TENSOR[3].replace("8", "1"))


@pytest.mark.parametrize(
    ("base", "head", "kind"),
    [(TENSOR, (TENSOR[0], *TENSOR[2:]), COST), (SAME_COLUMNS, (SAME_COLUMNS[0], *SAME_COLUMNS[2:]), SYNC)],
)
def test_a_wait_of_tensor_memory_stands_before_who_writes_the_same_columns(base, head, kind):
    assert of_ptx(base, head) is kind


def test_what_is_not_understood_is_never_code_motion():
    call = ("{", ".param .b64 param0;", "st.param.b64 [param0], %rd1;", "call.uni f, (param0);", "}")
    assert of_ptx(("add.s32 %r1, %r2, %r3;", *call), call) is UNKNOWN
    assert of_ptx(("newop.b32 %r1, %r2;",), ("newop.b32 %r1, %r2;", "add.s32 %r1, %r2, %r3;")) is UNKNOWN
    swap = amdgcn("s_swappc_b64 s[0:1], s[2:3]")
    assert effects.compare(Stage.AMDGCN, swap, swap).kind is UNKNOWN


LDS = (
    "ds_read_b32 v1, v0",
    "s_waitcnt lgkmcnt(0)",
    "v_add_f32_e32 v2, v1, v1",
    "global_store_dword v[4:5], v2, off",
)
MASKED = (
    "v_cmp_gt_i32_e32 vcc, s7, v0", "s_and_saveexec_b64 s[0:1], vcc", "v_add_u32_e32 v6, 1, v2",
    "global_store_dword v[4:5], v6, off", "s_or_b64 exec, exec, s[0:1]",
)  # fmt: skip
ATOMIC = ("ds_read_b32 v1, v0", "global_atomic_add_f32 v[4:5], v6, off")


@pytest.mark.parametrize(
    ("base", "head", "kind"),
    [
        (LDS, tuple(line.replace("v1", "v9") for line in LDS), MOTION),
        (LDS, (LDS[0], "s_waitcnt vmcnt(0) lgkmcnt(0)", *LDS[2:]), MOTION),
        (LDS, (LDS[0], "s_waitcnt lgkmcnt(1)", *LDS[2:]), SYNC),
        (LDS, (LDS[0], *LDS[2:]), SYNC),
        (LDS, (*LDS[:3], LDS[3] + " nt"), MEMORY),
        (
            ("v_add_u32_e32 v1, -2, v0", "v_add_u32_e32 v2, 1, v1", LDS[3]),
            ("v_add_u32_e32 v2, -1, v0", LDS[3]),
            MOTION,
        ),
        (LDS, (*LDS[:2], LDS[2].replace("add", "mul"), LDS[3]), FLOAT),
        (LDS, (*LDS[:2], "v_mfma_f32_32x32x8_f16 v[2:17], v[0:1], v[0:1], v[2:17]", LDS[3]), UNKNOWN),
        (MASKED, tuple(line.replace("v6", "v9") for line in MASKED), MOTION),
        (
            MASKED,
            tuple(line.replace("vcc", "s[8:9]").replace("_e32 s[", "_e64 s[") for line in MASKED),
            MOTION,
        ),
        (MASKED, (MASKED[0], *MASKED[2:]), UNKNOWN),
        (MASKED, (MASKED[0].replace("_gt_", "_ge_"), *MASKED[1:]), MEMORY),
        (MASKED, ("v_cmp_ge_u32_e32 vcc, s8, v0", *MASKED[1:]), UNKNOWN),
        (ATOMIC, ("s_waitcnt lgkmcnt(0)", *ATOMIC), MOTION),
        (ATOMIC, (ATOMIC[0], "s_waitcnt lgkmcnt(0)", ATOMIC[1]), COST),
        ((ATOMIC[0], "s_waitcnt lgkmcnt(0)", ATOMIC[1]), ATOMIC, SYNC),
    ],
)
def test_amd_waits_for_what_it_reads_and_acts_in_lanes(base, head, kind):
    assert effects.compare(Stage.AMDGCN, amdgcn(*base), amdgcn(*head)).kind is kind


def test_integers_are_equal_by_the_rules_of_arithmetic_and_no_others():
    values = Values()
    x, y, one, two, four = values.node("x"), values.node("y"), *(values.constant(n, 32) for n in (1, 2, 4))
    total = values.add(32, values.add(32, four, values.shift("shl", 32, x, two)), y)
    assert (
        total
        == values.add(32, values.mul(32, x, four), values.add(32, y, four))
        != values.add(32, total, four)
    )
    assert values.add(32, x, values.constant(2**32 - 1, 32)) == values.add(32, x, one, -1)
    assert values.add(64, total, one) != values.add(32, total, one)
    wide = values.extend("s", 32_064, values.add(32, x, one))
    assert wide != values.add(64, values.extend("s", 32_064, x), one), "the sum may wrap around"
    byte = values.bitwise("and", 32, x, values.constant(255, 32))
    longer = values.add(64, values.extend("z", 32_064, byte), values.constant(4, 64))
    assert values.extend("z", 32_064, values.add(32, byte, four)) == longer, "this sum may not"
    assert values.trunc(32, values.extend("s", 32_064, x)) == x
    less = values.compare("slt", 32, x, y)
    assert less == values.compare("sgt", 32, y, x) == values.invert(values.compare("sge", 32, x, y))
    assert (
        len(
            {
                less,
                values.compare("sle", 32, x, y),
                values.compare("ult", 32, x, y),
                values.compare("slt", 64, x, y),
            }
        )
        == 4
    )


def test_what_is_folded_has_the_value_of_what_it_was_made_from():
    """Random expressions, evaluated as they are made and as the table keeps them."""
    for seed in range(300):
        dice, values = random.Random(seed), Values()
        given = {name: dice.getrandbits(32) for name in ("a", "b")} | {"%tid.x": dice.randrange(1024)}
        pool = [(values.node("text", name), number) for name, number in given.items()]
        for _ in range(8):
            (x, mine), (y, other) = dice.choices(pool, k=2)
            ones = (1 << dice.randrange(1, 33)) - 1
            constant, places = dice.choice([ones, ones << dice.randrange(32) & M32, 8]), dice.randrange(32)
            shift, mask = values.constant(places, 32), values.constant(constant, 32)
            wide = values.extend("z", 32_064, values.add(32, x, y))
            pool += dice.choices(
                [
                    (values.shift("shl", 32, x, shift), mine << places & M32),
                    (values.shift("shr", 32, x, shift), mine >> places),
                    (values.bitwise("and", 32, x, mask), mine & constant),
                    (values.bitwise("or", 32, x, y), mine | other),
                    (values.bitwise("xor", 32, x, mask), mine ^ constant),
                    (values.add(32, x, y, -1), mine - other & M32),
                    (values.field(32, x, shift, values.constant(9)), mine >> places & 511),
                    (values.trunc(32, values.shift("shr", 64, wide, shift)), (mine + other & M32) >> places),
                ]
            )
            number, found = pool[-1]
            assert evaluated(values, number, given) & M32 == found, (seed, values.keys[number])
            assert not found & ~values.bits(number)


M32 = (1 << 32) - 1


def evaluated(values, number, given):
    match values.keys[number]:
        case "const", value:
            return int(value)
        case "text", name:
            return given[name]
        case "sum", width, constant, terms:
            total = constant + sum(evaluated(values, atom, given) * times for atom, times in terms)
            return int(total & (1 << width) - 1)
        case "bits", constant, terms:
            for (atom, places), mask in terms:
                value = evaluated(values, atom, given)
                constant ^= (value << places if places > 0 else value >> -places) & mask
            return int(constant)
        case "trunc", width, value:
            return evaluated(values, value, given) & int((1 << width) - 1)
        case name, width, one, other:
            x, y = (evaluated(values, each, given) & (1 << width) - 1 for each in (one, other))
            return int({"and": x & y, "or": x | y, "xor": x ^ y, "shr": x >> min(y, 64)}[name])
    raise AssertionError(values.keys[number])


@pytest.mark.parametrize("stage", STAGES)
def test_rewrites_are_proved_and_mutations_are_not(stage):
    """Of one text; `effect_rewrites` tries all."""
    name = {"ptx": "matmul/sm_90", "llir": "softmax/sm_90", "amdgcn": "attention/gfx942"}[stage]
    base = dict(texts(stage))[f"3.9.0/{name}/{stage}"]
    for kinds, is_proved in ((REWRITES, True), (mutations(stage), False)):
        for kind, rewrite in kinds.items():
            head = rewrite(stage, base, random.Random(1))
            assert head == base or (effects.compare(stage, base, head).kind is MOTION) is is_proved, kind
