"""What counts between two texts: small ones of `golden/effects.toml` forth and back, real ones, edits that break
kernels, and integers.
"""

import itertools
import json
import os
import random
import re
import subprocess
import sys
import tomllib
from operator import itemgetter
from pathlib import Path

import pytest
import zstandard

from irdiff import effects
from irdiff.effects.values import Values
from irdiff.model import Bits, Meaning
from tests.programs.effect_rewrites import REWRITES, STAGES, mutations, texts
from tests.unit.golden import golden, recorded

ROOT = Path(__file__).parents[3]
DATA = ROOT / "tests" / "data" / "effects"
SHELLS = {
    "ptx": (".target sm_90a", ".visible .entry k(", ")", ".reqntid 1024", "{", None, "ret;", "}"),
    "llir": (
        "define ptx_kernel void @k(ptr addrspace(1) %0, ptr addrspace(1) %1, ptr addrspace(3) %2, i32 %3) {",
        *(None, "}"),
    ),
    "amdgcn": (".text", ".type k,@function", "k:", None, "s_endpgm", '.section .rodata,"a",@progbits'),
}
"""What stands around the body of a kernel."""


def said(ir, *bodies):
    given = [f"ld.param.b32 {name}, [k_param_{name[1:]}];" for name in inputs(bodies)] if ir == "ptx" else []
    texts = (
        [line for row in SHELLS[ir] for line in ([row] if row else [*given, *body.split("\n")])]
        for body in bodies
    )
    found = effects.compare(ir, *texts)
    return "; ".join((f"{found.kind}, bits {found.bits}", *dict.fromkeys(found.said)))


def inputs(bodies):
    """The registers that no body writes."""
    text = "\n".join(bodies)
    written = "".join(re.findall(r"(?m)^(?:@\S+ )?[\w.:]+ (%[\w%|]+|\{[^}]*\}),?", text))
    return sorted({*re.findall(r"%[a-z]+\d+\b", text)} - {*re.findall(r"%[a-z]+\d+\b", written)})


def test_what_is_said_of_small_texts_forth_and_back():
    rows = []
    for base in golden("effects")["base"]:
        for head in base["head"]:
            text = edited(head.get("text", base["text"]), head.get("edit", ()))
            forth, back = said(base["ir"], base["text"], text), said(base["ir"], text, base["text"])
            rows.append(f"{base['ir']}, {head['why']}\n  {forth}\n  {back}\n")
    recorded("effects.txt", "".join(rows))


def test_the_same_code_with_other_threads_does_not_the_same():
    body = ("{", "mov.u32 %r1, %tid.x;", "st.global.b32 [%rd0], %r1;", "ret;", "}")
    base, *heads = (
        [".visible .entry k(", ")", threads, *body]
        for threads in (
            ".reqntid 128",
            ".reqntid 128",
            ".maxntid 128, 1, 1",
            ".reqntid 256",
            ".reqntid 32, 4",
        )
    )
    kinds = [effects.compare("ptx", base, head).kind for head in heads]
    assert kinds == [Meaning.SAME, Meaning.SAME, Meaning.NOT_SHOWN, Meaning.NOT_SHOWN]


def test_integers_are_equal_by_the_rules_of_arithmetic_and_no_others():
    values = Values()
    x, y, one, two, four = values.node("x"), values.node("y"), *(values.constant(n, 32) for n in (1, 2, 4))
    total = values.add(32, values.add(32, four, values.shift("shl", 32, x, two)), y)
    assert total == values.add(32, values.mul(32, x, four), values.add(32, y, four))
    assert total != values.add(32, total, four)
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
    others = {values.compare(*row, x, y) for row in (("sle", 32), ("ult", 32), ("slt", 64))}
    assert len({less, *others}) == 4


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
            signed = values.extend("s", 32_064, values.bitwise("or", 32, x, y))
            high = values.shift("shl", 64, values.extend("z", 32_064, y), values.constant(32))
            both = values.bitwise("or", 64, values.extend("z", 32_064, x), high)
            pool += dice.choices(
                [
                    (values.shift("shl", 32, x, shift), mine << places & M32),
                    (values.shift("shr", 32, x, shift), mine >> places),
                    (values.bitwise("and", 32, x, mask), mine & constant),
                    (values.extend("s", 8_032, x), as_signed(mine, 8) & M32),
                    (values.extend("s", 8_032, mask), as_signed(constant, 8) & M32),
                    (values.bitwise("or", 32, x, y), mine | other),
                    (values.bitwise("xor", 32, x, mask), mine ^ constant),
                    (values.add(32, x, y, -1), mine - other & M32),
                    (values.field(32, x, shift, values.constant(9)), mine >> places & 511),
                    (values.trunc(32, values.shift("shr", 64, wide, shift)), (mine + other & M32) >> places),
                    (
                        values.trunc(32, values.shift("shr", 64, signed, shift)),
                        as_signed(mine | other) >> places & M32,
                    ),
                    (values.part(both, place := dice.randrange(2), 2), other if place else mine),
                ]
            )
            number, found = pool[-1]
            assert evaluated(values, number, given) & M32 == found, (seed, values.keys[number])
            assert not found & ~values.bits(number)


M32 = (1 << 32) - 1


def as_signed(number, width=32):
    number &= (1 << width) - 1
    return number - (number >> width - 1 << width)


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
        case "sext", width, source, value:
            return int(as_signed(evaluated(values, value, given), source) & (1 << width) - 1)
        case "part", value, place, 2:
            return evaluated(values, value, given) >> 32 * place & M32
        case name, width, one, other:
            x, y = (evaluated(values, each, given) & (1 << width) - 1 for each in (one, other))
            return int({"and": x & y, "or": x | y, "xor": x ^ y, "shr": x >> min(y, 64)}[name])
    raise AssertionError(values.keys[number])


def test_comparisons_with_constants_have_one_form_and_the_same_outcome():
    edges = [0, 1, 2, 63, 64, 65, (1 << 31) - 2, (1 << 31) - 1, 1 << 31, (1 << 31) + 1, M32 - 1, M32]
    less, tests = {"s": lambda a, b: as_signed(a) < as_signed(b), "u": lambda a, b: a < b}, Values()
    x = tests.node("text", "x")

    def outcome(number, value):
        match tests.keys[number]:
            case "const", constant:
                return bool(constant)
            case "not", inner:
                return not outcome(inner, value)
            case "eq", 32, *both:
                return len({evaluated(tests, each, {"x": value}) & M32 for each in both}) == 1
            case "lt", kind, *both:
                return less[kind[0]](*(evaluated(tests, each, {"x": value}) & M32 for each in both))

    for sign, bound, value in itertools.product("su", edges, edges):
        c = tests.constant(bound, 32)
        for kind, is_true in (
            ("lt", less[sign](value, bound)),
            ("ge", not less[sign](value, bound)),
            ("gt", less[sign](bound, value)),
            ("le", not less[sign](bound, value)),
        ):
            assert outcome(tests.compare(f"{sign}{kind}", 32, x, c), value) is is_true
            turned = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}[kind]
            assert tests.compare(f"{sign}{kind}", 32, x, c) == tests.compare(f"{sign}{turned}", 32, c, x)
        for kind, choose in (("min", min), ("max", max)):
            key = as_signed if sign == "s" else int
            result = tests.extreme(f"{sign}{kind}", 32, x, c)
            assert bound != 64 or result == tests.extreme(f"{sign}{kind}", 32, c, x)
            while tests.keys[result][0] == "select":
                _, condition, one, other = tests.keys[result]
                result = one if outcome(condition, value) else other
            assert evaluated(tests, result, {"x": value}) & M32 == choose(value, bound, key=key)
    assert tests.compare("ugt", 32, x, tests.constant(0)) == tests.compare("ne", 32, x, tests.constant(0))
    assert tests.compare("sgt", 32, x, tests.constant(64)) == tests.compare("sge", 32, x, tests.constant(65))


@pytest.mark.parametrize("stage", STAGES)
def test_rewrites_are_proved_and_mutations_are_not(stage):
    """Of one text; `effect_rewrites` tries all."""
    name = {"ptx": "matmul/sm_90", "llir": "softmax/sm_90", "amdgcn": "attention/gfx942"}[stage]
    base = dict(texts(stage))[f"3.9.0/{name}/{stage}"]
    for kinds, is_proved in ((REWRITES, True), (mutations(stage), False)):
        for kind, rewrite in kinds.items():
            head = rewrite(stage, base, random.Random(1))
            proved = head != base and effects.compare(stage, base, head).kind is Meaning.SAME
            assert head == base or proved is is_proved, kind


def test_a_store_may_end_a_chain_of_any_length():
    chain = "\n".join(["add.rn.f32 %f1, %f1, %f2;"] * 2_000)
    body = f"""mov.u32 %r1, %tid.x;
and.b32 %r2, %r1, 31;
setp.eq.s32 %p1, %r2, 0;
ld.global.b32 %f1, [%rd1];
ld.global.b32 %f2, [%rd1+4];
{chain}
@%p1 st.shared.b32 [%r9], %f1;"""
    assert said("ptx", body, body.replace("%r2, 0", "%r2, 1")).startswith("same")


PLANTED = golden("planted-edits")["edit"]


@pytest.mark.parametrize("row", PLANTED, ids=itemgetter("why"))
def test_an_edit_is_named(row):
    stage, kernel, target = row["artifact"].split()
    base = "\n".join(dict(texts(stage))[f"3.9.0/{kernel}/{target}/{stage}"])
    head, made = re.subn(row["pattern"], row["replacement"], base, count=row["count"], flags=re.M)
    assert made == row["count"] or not row["count"]
    assert head != base
    found = effects.compare(stage, base.split("\n"), head.split("\n"))
    assert (found.kind, found.said[0]) == (row["kind"], row["said"])
    assert found.bits is not Bits.SAME
    for witness in (each.witness for each in found.hazards):
        for side, text in ((witness.base, base.split("\n")), (witness.head, head.split("\n"))):
            assert all(text[line.number - 1].startswith(line.text[:200]) for line in side)
        assert witness.base or witness.head


def test_what_a_launch_passes_stays_and_other_memory_may_change():
    """AMD: the address of the arguments of this kernel is in s[2:3] when it begins."""
    load = "s_load_dword s4, s[2:3], 0x8\ns_waitcnt lgkmcnt(0)\nv_mov_b32_e32 v1, s4"
    stores = [
        f"global_store_dword {address}, {value}, s[0:1]" for address, value in (("v2", "v5"), ("v3", "v1"))
    ]
    base, head = [load, *stores], [stores[0], load, stores[1]]
    settings = [f".amdhsa_user_sgpr_{each}_ptr 1" for each in ("dispatch", "kernarg_segment")]

    def is_same(settings, *before):
        end = ['.section .rodata,"a",@progbits', ".amdhsa_kernel k", *settings, ".end_amdhsa_kernel"]
        begin = [".text", ".type k,@function", "k:", *before]
        texts = ("\n".join([*begin, *body, "s_endpgm", *end]).split("\n") for body in (base, head))
        return effects.compare("amdgcn", *texts).kind is Meaning.SAME

    assert is_same(settings)
    assert not is_same(settings[1:]), "they are in s[0:1]"
    assert not is_same(settings[:1]), "there are none"
    assert not is_same(settings, "s_mov_b32 s3, s9")
    assert not is_same(settings, ".L0:", "s_cbranch_scc1 .L1", "s_mov_b32 s3, s9", "s_branch .L0", ".L1:")


def test_a_launch_passes_parameters_by_their_place():
    heads = [f".param .u64 k_param_{n}," for n in range(3)]
    body = ("{", "ld.param.b64 %rd1, [k_param_1];", "st.global.b32 [%rd1], 1;", "ret;", "}")
    texts = ([".visible .entry k(", *own, ")", *body] for own in (heads, heads[:2], heads[1:]))
    base, fewer, moved = texts
    kinds = [effects.compare("ptx", base, head).kind for head in (fewer, moved)]
    assert kinds == [Meaning.SAME, Meaning.NOT_SHOWN]


ATTACKS = tomllib.loads((DATA / "attacks.toml").read_text())["rule"]


@pytest.mark.parametrize("rule", ATTACKS, ids=itemgetter("why"))
def test_a_rule_proves_its_rewrite_and_no_attack(rule):
    ir, base = rule.get("ir", "ptx"), rule["text"].strip()
    head = edited(base, rule["edit"])
    assert said(ir, base, head).startswith("same, bits same")
    assert rule.get("is_one_way") or said(ir, head, base).startswith("same, bits same")
    for attack in rule["on_head"]:
        assert not said(ir, base, edited(head, attack)).startswith("same"), attack
    for old, new in rule["on_both"]:
        assert old in base, old
        sides = (each.replace(old, new) for each in (base, head))
        assert not said(ir, *sides).startswith("same"), (old, new)


NUMBERED = """
from irdiff.effects.values import Values
from tests.unit.effects.test_compare import said

node, made = Values.node, []
Values.node = lambda self, *key: (made.append(repr(key)), node(self, *key))[1]
said("ptx", *["wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %rd1, %rd2, 0, 1, 1, 0, 0;"
     "\\nwgmma.wait_group.sync.aligned 0;\\nst.global.v4.b32 [%rd3], {%f1,%f2,%f3,%f4};"] * 2)
print(made)
"""


def test_values_have_the_same_numbers_in_every_process():
    """Their samples come from their numbers."""
    results = {
        subprocess.run(
            [sys.executable, "-c", NUMBERED],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            cwd=ROOT,
            check=True,
            capture_output=True,
        ).stdout
        for seed in range(3)
    }
    assert len(results) == 1


def edited(text, edit):
    for old, new in zip(*[iter(edit)] * 2, strict=True):
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def test_edits_that_no_rule_was_made_for():
    """None that is harmful is the same, and at most two that are harmless are a hazard."""
    rows, kinds = [], {"harmful": [], "harmless": []}
    for what, found in kinds.items():
        for row in golden("fresh-edits")[what]:
            stage, kernel, target = row["artifact"].split()
            base = "\n".join(dict(texts(stage))[f"3.9.0/{kernel}/{target}/{stage}"])
            head, made = re.subn(*row["edit"], base, count=0 if row.get("every") else 1)
            assert made, row["why"]
            assert head != base, row["why"]
            answer = effects.compare(stage, base.split("\n"), head.split("\n"))
            found.append(answer.kind)
            said = "; ".join((answer.kind, *answer.said[:1]))
            rows.append(f"{what}, {row['artifact']}: {row['why']}\n  {said}\n")
    assert Meaning.SAME not in kinds["harmful"]
    assert kinds["harmless"].count(Meaning.HAZARD) <= 2
    recorded("fresh-edits.txt", "".join(rows))


EDITS = DATA / "edits-of-another-hand.jsonl.zst"


def test_edits_of_a_hand_that_knew_no_rule():
    """Sixty, labelled before anything was run on them, of TTGIR (24, seen in what it is lowered to), PTX and
    AMD's assembly.
    """
    rows, kinds = [], {"harmful": [], "rounding": [], "harmless": []}
    for line in zstandard.ZstdDecompressor().decompress(EDITS.read_bytes()).decode().splitlines():
        edit = json.loads(line)
        answer = effects.compare(edit["stage"], edit["base"].split("\n"), edit["head"].split("\n"))
        kinds[edit["label"]].append(answer.kind)
        said = "; ".join((answer.kind, *answer.said[:1]))
        rows.append(f"{edit['label']}, {edit['stage']}: {edit['name']}\n  {said}\n")
    assert Meaning.SAME not in kinds["harmful"] + kinds["rounding"]
    assert kinds["harmless"].count(Meaning.HAZARD) <= 2
    recorded("edits-of-another-hand.txt", "".join(rows))
