"""Wait states that the hardware of gfx942 and gfx950 needs and does not insert. Pure.

Every instruction between a result and what reads it is a wait state, and `s_nop N` is N + 1. Pairs in two
blocks are not looked at, and no results of matrix instructions. Source: AMD Instinct MI300 ISA, 4.5 "Manually
Inserted Wait States"; LLVM's GCNHazardRecognizer for the two targets.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_TARGET = re.compile(r"\.amdgcn_target .*gfx9(?:4\d|50)\b")
_MOST = 5
_MOST_OF_MATRICES = 20
_MATRIX = ("v_mfma", "v_smfmac")
_SPECIAL = re.compile(r"v_(?:exp|log|rcp|rsq|sqrt|sin|cos)_")
"""Instructions of the unit for transcendental functions."""
_TWO_RESULTS = re.compile(r"v_(?:(?:add|sub|subrev|addc|subb|subbrev)_co_|mad_[ui]64|div_scale)")
_READS_RESULT = re.compile(r"v_(?:fmac|mac|dot\w*c)_|_sdwa$|_dpp$")
_MEMORY = re.compile(r"(?:buffer|global|flat|scratch|tbuffer)_")
_READS_LANE = re.compile(r"v_read(?:first)?lane_")
_NAMES_LANE = re.compile(r"v_(?:read|write)lane_")
_REGISTER = re.compile(r"(?<![\w.$@])(?:([vs])\[(\d+):(\d+)\]|([vs]\d+|vcc|exec|m0)\b)")
_COMMA = re.compile(r",\s*(?![^\[]*\])")


class AssemblyLine(NamedTuple):
    number: int
    text: str
    opcode: str
    results: frozenset[str]
    """Of vector instructions."""
    reads: frozenset[str]
    named_lane: frozenset[str]
    """The register that names a lane."""


class Dependency(NamedTuple):
    """A result and an instruction of its block that reads it and needs wait states between."""

    writer: AssemblyLine
    reader: AssemblyLine
    states: int
    """Between both."""
    needed: int
    nops: dict[int, int]
    """Of these, those of each `s_nop`, by its line."""


def early(assembly: Sequence[str]) -> Iterator[Dependency]:
    """Yields each result that is read too early."""
    return (each for each in _dependencies(assembly) if each.states < each.needed)


def explained(assembly: Sequence[str]) -> frozenset[int]:
    """Returns the lines of each `s_nop` without which a result would be read too early.

    Not those that stand shortly behind a matrix instruction: it may need them, too.
    """
    lines = set[int]()
    for each in _dependencies(assembly):
        if each.states - sum(each.nops.values()) < each.needed:
            lines |= each.nops.keys()
    return frozenset(lines) - _behind_matrices(assembly)


def _dependencies(assembly: Sequence[str]) -> Iterator[Dependency]:
    if not any(map(_TARGET.match, assembly)):
        return
    recent: list[tuple[int, AssemblyLine]] = []
    nops: dict[int, int] = {}
    now = 0
    for number, text in enumerate(assembly, 1):
        if _is_outside(text):
            recent, nops = [], {}
            continue
        line = _read(number, text)
        for at, writer in recent:
            if needed := _needed(writer, line):
                between = {each: states for each, states in nops.items() if each > writer.number}
                yield Dependency(writer, line, now - at - 1, needed, between)
        if line.opcode == "s_nop":
            nops[number] = _states(text)
        recent = [(at, each) for at, each in recent if now - at <= _MOST and each.results - line.results]
        if line.results and not line.opcode.startswith(_MATRIX):
            recent.append((now, line))
        now += _states(text)


def _behind_matrices(assembly: Sequence[str]) -> set[int]:
    lines, left = set[int](), 0
    for number, text in enumerate(assembly, 1):
        left = _MOST_OF_MATRICES if text.startswith(_MATRIX) else 0 if _is_outside(text) else left - 1
        if left > 0:
            lines.add(number)
    return lines


def _is_outside(text: str) -> bool:
    """Whether a line is a label or none of code."""
    return text.endswith(":") or text.startswith((".", "-"))


def _states(text: str) -> int:
    opcode, _, rest = text.partition(" ")
    return int(rest, 0) + 1 if opcode == "s_nop" else 1


def _needed(writer: AssemblyLine, reader: AssemblyLine) -> int:
    """Wait states between a vector instruction and one that may read its results; 0 for none."""
    shared = writer.results & reader.reads
    vectors = {each for each in shared if each[0] == "v" and each != "vcc"}
    scalars = shared - vectors
    is_vector = reader.opcode.startswith("v_")
    needed = [0]
    if vectors and is_vector and _SPECIAL.match(writer.opcode) and not _SPECIAL.match(reader.opcode):
        needed.append(1)
    if vectors and _READS_LANE.match(reader.opcode):
        needed.append(1)
    if vectors and reader.opcode.endswith("_dpp"):
        needed.append(2)
    if scalars and is_vector:
        needed.append(2)
    if writer.results & reader.named_lane or ("vcc" in writer.results and "div_fmas" in reader.opcode):
        needed.append(4)
    if scalars and _MEMORY.match(reader.opcode):
        needed.append(5)
    return max(needed)


def _read(number: int, text: str) -> AssemblyLine:
    opcode, _, rest = text.partition(" ")
    operands = [_registers(part) for part in _COMMA.split(rest)]
    count = 2 if _TWO_RESULTS.match(opcode) else 1
    is_vector = opcode.startswith("v_")
    results = frozenset[str]().union(*operands[:count]) if is_vector else frozenset[str]()
    sources = operands[count:] if is_vector and not _READS_RESULT.search(opcode) else operands
    named_lane = operands[2] if _NAMES_LANE.match(opcode) and len(operands) > 2 else frozenset[str]()
    return AssemblyLine(number, text, opcode, results, frozenset[str]().union(*sources), named_lane)


def _registers(text: str) -> frozenset[str]:
    names = set[str]()
    for kind, first, last, single in _REGISTER.findall(text):
        names |= {f"{kind}{n}" for n in range(int(first), int(last) + 1)} if kind else {single}
    return frozenset(names)
