"""`same_up_to_registers` on small programs, both ways, and on real texts with one live range renamed."""

from __future__ import annotations

import re
from random import Random

import pytest

from irdiff.normalize import canonicalize, equivalent
from irdiff.normalize.registers import same_up_to_registers
from tests.mutation.artifacts import of_stage

_FRAME = """.amdgcn_target gfx942
.text
.type f,@function
f:
{code}
s_endpgm
.fill 48, 4, 3212836864
.amdhsa_kernel f
.end_amdhsa_kernel
.amdgpu_metadata
- v0: s0
.end_amdgpu_metadata"""

_LOOP = """v_mov_b32_e32 v1, 0
.L0:
v_add_u32_e32 v1, v1, v0
s_cmp_lt_u32 s0, 4
s_cbranch_scc1 .L0
global_store_dword v[4:5], v1, off"""
_MASKED = """v_mov_b32_e32 v1, 0
s_and_saveexec_b64 s[0:1], vcc
s_cbranch_execz .L0
global_load_dword v1, v[4:5], off
.L0:
s_or_b64 exec, exec, s[0:1]
global_store_dword v[4:5], v1, off"""
_UNMASKED_AFTER = """s_and_saveexec_b64 s[0:1], vcc
v_mov_b32_e32 v1, 0
s_or_b64 exec, exec, s[0:1]
global_store_dword v[4:5], v1, off"""
_INSIDE = """s_and_saveexec_b64 s[0:1], vcc
v_mov_b32_e32 v1, 0
global_store_dword v[4:5], v1, off
s_or_b64 exec, exec, s[0:1]"""
_PAIR = """global_load_dwordx2 v[6:7], v[4:5], off
v_add_f32_e32 v1, v6, v7
global_store_dword v[4:5], v1, off"""
_LOW_HALF = """v_cvt_f16_f32_e32 v1, v0
global_store_dword v[4:5], v1, off"""


def _lines(code: str) -> list[str]:
    return _FRAME.format(code=code).split("\n")


def _same(code: str, *changes: tuple[str, str], count: int = -1) -> bool:
    other = code
    for old, new in changes:
        assert old in other
        other = other.replace(old, new, count)
    return same_up_to_registers(_lines(code), _lines(other))


@pytest.mark.parametrize("code", [_LOOP, _MASKED, _INSIDE, _PAIR])
def test_a_renamed_live_range_is_the_same(code: str) -> None:
    assert _same(code, ("v1", "v9"))
    assert _same(code, ("s[0:1]", "s[8:9]")) if "s[0:1]" in code else True


@pytest.mark.parametrize("code", [_LOOP, _MASKED, _INSIDE, _PAIR])
def test_one_place_left_wrong_is_not(code: str) -> None:
    places = [match.start() for match in re.finditer(r"\bv1\b", code)]
    for place in places:
        other = code[:place] + "v9" + code[place + 2 :]
        assert not same_up_to_registers(_lines(code), _lines(other)), other


def test_halves_of_a_pair_are_told_apart() -> None:
    assert _same(_PAIR, ("v[6:7]", "v[8:9]"), ("v6, v7", "v8, v9"))
    assert not _same(_PAIR, ("v6, v7", "v7, v6"))
    assert not _same(_PAIR, ("v[6:7]", "v[8:9]"), ("v6, v7", "v9, v8"))


def test_lanes_that_were_off_keep_their_own_values() -> None:
    assert _same(_UNMASKED_AFTER, ("s[0:1]", "s[8:9]"))
    assert not _same(_UNMASKED_AFTER, ("v1", "v9"))


def test_a_result_of_16_bits_keeps_the_rest() -> None:
    assert not _same(_LOW_HALF, ("v1", "v9"))


@pytest.mark.parametrize(
    "line",
    [
        "s_swappc_b64 s[30:31], s[0:1]",
        "v_made_up_b32 v1, v0",
        "v_cmpx_eq_u32_e32 vcc, v0, v1",
        "s_mov_b64 exec, -1",
        "v_movrels_b32_e32 v1, v0",
        "global_atomic_add v1, v[4:5], v0, off sc0",
        "s_branch .Lnowhere",
        ".long 3212836864",
        "v_mov_b32_e32 v1000, v0",
    ],
)
def test_what_is_not_known_is_refused(line: str) -> None:
    assert not _same(f"{line}\n{_PAIR}", ("v1,", "v9,")) if "v1," in line else not _same(f"{line}\n{_PAIR}")


def test_what_is_no_instruction_must_be_equal() -> None:
    base = _lines(_LOOP)
    assert same_up_to_registers(base, base)
    for line in ("- v0: s0", ".amdhsa_kernel f", ".text"):
        changed = [part.replace(line, line.replace("0", "1") + "x") for part in base]
        assert not same_up_to_registers(base, changed)
    assert not same_up_to_registers(base, base[:-1])


def test_other_operations_and_constants_are_not_the_same() -> None:
    assert not _same(_LOOP, ("v_add_u32", "v_sub_u32"))
    assert not _same(_LOOP, ("s0, 4", "s0, 5"))
    assert not _same(_LOOP, ("v1, v1, v0", "s1, s1, s0"))


_WHOLE = re.compile(r"v_(?:add|sub|mul|fma|max|lshlrev|and|or|mov|exp)_[fbu]32(?:_e\d+)? ")
"""Replaces all of its result, so that nothing of the old one lives on."""


def _renamed_live_range(lines: list[str], random: Random) -> tuple[list[str], list[int]] | None:
    """One definition and its uses within a block moved to a register that the text does not use."""
    free = "v255"
    starts = [
        i for i, line in enumerate(lines) if re.match(r"v_(?:add|lshlrev|and|or)_[bu]32_e32 v\d+,", line)
    ]
    for start in random.sample(starts, len(starts)):
        name = lines[start].split(" ", 1)[1].split(",")[0]
        number = int(name[1:])
        renamed, uses = list(lines), []
        renamed[start] = lines[start].replace(f" {name},", f" {free},", 1)
        for index in range(start + 1, len(lines)):
            line = lines[index]
            if line.endswith(":") or line.startswith(("s_cbranch", "s_branch", "s_endpgm")) or "exec" in line:
                break
            ranges = re.findall(r"v\[(\d+):(\d+)\]", line)
            if any(int(first) <= number <= int(last) for first, last in ranges):
                break
            head, comma, tail = line.partition(",")
            if line.startswith(("ds_write", "global_store", "buffer_store")) or "mac" in head:
                if re.search(rf"\b{name}\b", line):
                    break
                continue
            if re.search(rf"\b{name}\b", tail):
                renamed[index] = head + comma + re.sub(rf"\b{name}\b", free, tail)
                uses.append(index)
            if re.search(rf" {name}$", head):
                if uses and _WHOLE.match(line):
                    return renamed, uses
                break
    return None


def test_real_texts() -> None:
    random = Random(1)
    accepted = 0
    for artifact in of_stage("amdgcn", release="3.9.0"):
        lines = list(canonicalize("amdgcn", artifact.text).lines)
        if not same_up_to_registers(lines, lines) or "v255" in artifact.text:
            continue
        for _ in range(3):
            made = _renamed_live_range(lines, random)
            if made is None:
                break
            renamed, uses = made
            assert same_up_to_registers(lines, renamed), artifact.name
            wrong = random.choice(uses)
            renamed[wrong] = lines[wrong]
            assert not same_up_to_registers(lines, renamed), (artifact.name, wrong)
            accepted += 1
    assert accepted >= 6


def test_the_fact_stands_beside_a_difference() -> None:
    base = "\n".join(_lines(_LOOP))
    found = equivalent("amdgcn", base, base.replace("v1", "v9"))
    assert not found.equal
    assert found.findings == ("same-up-to-registers",)
