"""Which machine codes differ in order and registers alone. Words as ptxas makes them for sm_90."""

from __future__ import annotations

from irdiff.compare.rescheduled import same_instructions, same_lines

FADD = 0x004FE20000000000_0000000304027221
"""`FADD R2, R4, R3`, with a stall of 2 and a wait."""
MOVE = 0x000FE200000F0200_0000000100057802
"""`MOV R5, 0x1`"""


def sections(*words: int, **data: bytes) -> dict[str, bytes]:
    code = b"".join(word.to_bytes(16, "little") for word in words)
    return {".text.KERNEL": code, **{f".nv.constant0.{name}": content for name, content in data.items()}}


def test_another_order_other_registers_and_other_stalls_are_the_same_instructions() -> None:
    renamed = FADD ^ (0x7 << 16) ^ (0x3 << 24) ^ (0x9 << 32)
    stalled = FADD ^ (0x5 << 105)
    assert same_instructions(sections(FADD, MOVE), sections(MOVE, FADD))
    assert same_instructions(sections(FADD), sections(renamed))
    assert same_instructions(sections(FADD), sections(stalled))


def test_one_instruction_modifier_or_constant_more_is_another_code() -> None:
    assert not same_instructions(sections(FADD), sections(FADD, FADD))
    assert not same_instructions(sections(FADD), sections(FADD ^ (1 << 80)))
    assert not same_instructions(sections(MOVE), sections(MOVE ^ (1 << 33)))
    assert not same_instructions(sections(FADD), sections(FADD ^ 1))
    assert not same_instructions(sections(FADD), sections(FADD ^ (1 << 15)))
    assert not same_instructions(sections(FADD, k=b"\1"), sections(FADD, k=b"\2"))


def test_lines_of_amd_without_the_numbers_of_registers() -> None:
    base = ["v_add_f32_e32 v1, v2, v3", "s_waitcnt vmcnt(0)"]
    assert same_lines(base, ["s_waitcnt vmcnt(0)", "v_add_f32_e32 v7, v2, v4"])
    assert not same_lines(base, ["s_waitcnt vmcnt(1)", "v_add_f32_e32 v1, v2, v3"])
    assert not same_lines(base, [*base, "s_nop 0"])
    assert not same_lines(base, ["v_add_f32_e32 v1, v2, s3", "s_waitcnt vmcnt(0)"])
