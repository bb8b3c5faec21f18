"""The lines that show a difference."""

from types import SimpleNamespace

from irdiff import effects
from irdiff.effects.witnesses import Witnesses
from irdiff.model import Sides


def side(*events):
    """(number, line) of each effect."""
    rows = [SimpleNamespace(number=number, line=line) for number, line in events]
    return SimpleNamespace(blocks=[SimpleNamespace(events=rows)])


def test_two_effects_in_one_line_of_which_the_other_side_has_one():
    """A bulk copy reads and writes: its line holds two effects."""
    texts = Sides(base=("a", "copy", "barrier"), head=("a", "copy"))
    base = side((1, 1), (7, 2), (2, 2), (3, 3))
    witness = Witnesses(base, side((1, 1), (2, 2)), texts).alone(SimpleNamespace(line=3), is_gone=True)
    assert [line.text for line in witness.base] == ["barrier"]
    assert [line.text for line in witness.head] == ["copy"]


def texts_of(witness):
    return [[line.text for line in side] for side in (witness.base, witness.head)]


def compared(stage, base, head):
    shells = {
        "ptx": (".visible .entry k(", ")", ".reqntid 128", "{", None, "ret;", "}"),
        "amdgcn": (".text", ".type k,@function", "k:", None, "s_endpgm", '.section .rodata,"a",@progbits'),
    }
    sides = ([line for each in shells[stage] for line in ([each] if each else body)] for body in (base, head))
    return effects.compare(stage, *sides)


def test_an_effect_with_equal_lines_is_shown_with_the_line_that_makes_the_difference():
    base = (
        "mov.u32 %r1, %tid.x;",
        "xor.b32 %r2, %r1, 136;",
        "shl.b32 %r3, %r2, 2;",
        "ld.shared.b32 %r4, [%r3];",
        "st.global.b32 [%rd1], %r4;",
    )
    head = [line.replace("136", "128") for line in base]
    (hazard,) = compared("ptx", base, head).hazards
    shown = texts_of(hazard.witness)
    assert all(base[1] in shown[0] and head[1] in shown[1] and base[3] in side for side in shown)


def test_the_barrier_is_shown_whose_wait_was_relaxed():
    base = (
        "v_lshlrev_b32_e32 v1, 2, v0",
        "v_xor_b32_e32 v4, 0x7fc, v1",
        "s_barrier",
        "v_add_u32_e32 v6, v7, v8",
        "ds_write_b32 v1, v3",
        "s_waitcnt lgkmcnt(0)",
        "s_barrier",
        "ds_read_b32 v5, v4",
        "s_waitcnt lgkmcnt(0)",
        "s_barrier",
        "global_store_dword v6, v5, s[2:3]",
    )
    head = (*base[:5], *base[6:])
    (hazard,) = compared("amdgcn", base, head).hazards
    assert [line.number for line in hazard.witness.base] == [8, 10, 11]
    assert [line.number for line in hazard.witness.head] == [8, 9, 10]
