"""Wait states that the hardware of gfx942 and gfx950 needs and does not insert. Pure.

The hardware does not always wait for the result of an instruction. Between such an instruction and another
one that reads or overwrites its result, the code must have a certain number of *wait states*. Every
instruction between the two is a wait state, and `s_nop N` is N + 1. All paths from the first instruction are
followed, also into other blocks.

- For vector instructions and wide stores a table has the numbers. If head has fewer wait states than the
  table says, and base has enough, this is a hazard (`early`).
- How many a matrix instruction needs depends on how many passes through the hardware it takes, and there is
  no full table of passes. So a pair of head is compared with the pair of the same kind that stands closest
  together on base: the same matrix instruction with the same modifiers, and the same use of its registers.
  If the pair of head stands closer, this is not shown (`spacings`). No jump may lie between base's pair,
  because maybe no thread takes this path. Or all pairs of a kind on paths with jumps must stand as far apart
  as on base, one by one in the order of the text.

An `s_nop` that gives the wait states of any of these pairs is not compared by itself (`explained`). All other
`s_nop`s are, and on other targets every `s_nop`. Source: AMD Instinct MI300 ISA, 4.5 "Manually Inserted Wait
States"; LLVM's GCNHazardRecognizer for the two targets.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from irdiff.ir.amdgcn.opcodes import READS_RESULT, TWO_RESULTS
from irdiff.ir.amdgcn.operand_texts import REGISTER, registers_in
from irdiff.ir.program import Spacing

_TARGET = re.compile(r"\.amdgcn_target .*gfx9(?:4\d|50)\b")
_MOST = 5
_MOST_OF_MATRICES = 20
_MOST_OF_SHAPES = ((re.compile("_16x16x(?:16|32)_b?f16$"), 8), (re.compile("_32x32x(?:8|16)_b?f16$"), 12))
"""Most states behind instructions of 4 and 8 passes: four more than passes. Others have at most 16 passes."""
_ADDS_LATE = re.compile("_4x4x|f64")
"""Matrix instructions whose whole result another cannot add at once."""
_MATRIX = re.compile(r"v_s?mfmac?_")
_DOT = re.compile(r"v_dot\d")
_SPECIAL = re.compile(r"v_(?:exp|log|rcp|rsq|sqrt|sin|cos)_")
"""Instructions of the unit for transcendental functions."""
_MEMORY = re.compile(r"(?:buffer|global|flat|scratch|tbuffer)_")
_LOADS = re.compile(r"(?:\w+_load|ds_(?:read|\w*permute|swizzle|\w*_rtn))|\w+_atomic\w* .*\bsc0\b")
_WIDE_STORE = re.compile(r"(?:buffer|global|flat|scratch)_store_dwordx[34] ")
_READS_M0 = re.compile(r".*(?:_lds_|\blds\b)|s_sendmsg|s_movrel")
_READS_LANE = re.compile(r"v_read(?:first)?lane_")
_NAMES_LANE = re.compile(r"v_(?:read|write)lane_")
_EXCHANGES_LANES = re.compile(r"v_permlane\d+_swap")
_WRITES_PART = re.compile(r"dst_sel:(?!DWORD)|v_cvt_scalef32_\w*fp4")
_CHOSEN_HALVES = re.compile(r"\bop_sel:\[([01,]+)\]")
_IMPLICIT = frozenset(("exec", "m0", "vcc"))
"""Registers that some instructions read and no operand names."""
_COMMA = re.compile(r",\s*(?![^\[]*\])")
_JUMP = re.compile(r"s_(c?branch\w*) +(\S+)")
_ENDS = re.compile(r"s_(?:endpgm|setpc|swappc|branch)")


class AssemblyLine(NamedTuple):
    text: str
    opcode: str
    operands: tuple[frozenset[str], ...]
    """The registers of each."""
    results: frozenset[str]
    reads: frozenset[str]
    named_lane: frozenset[str]
    """The register that names a lane."""
    is_vector: bool
    is_matrix: bool
    states: int
    """How many wait states it is."""
    target: str
    """The label that it may jump to."""
    is_end: bool
    """The next line is not reached from here."""

    @property
    def sum_place(self) -> int:
        """Which operand of a matrix instruction is added to its product."""
        return 0 if self.opcode.startswith("v_smfmac") else 3


class Dependency(NamedTuple):
    """Two instructions that need wait states between: the later reads or writes registers of the earlier."""

    writer: AssemblyLine
    reader: AssemblyLine
    numbers: tuple[int, int]
    """Their lines."""
    states: int
    """Between both, on this path."""
    needed: int
    kind: str
    """Where no table has the number of states: pairs of one kind need equally many, and at most `needed`."""
    nops: Mapping[int, int]
    """By line, how many of `states` each `s_nop` gives."""
    is_straight: bool
    """True if no jump lies between both: whoever executes the one executes the other."""


def early(assembly: Sequence[str]) -> Iterator[Dependency]:
    """Yields each pair that has too few wait states by the table."""
    return (each for each in _dependencies(tuple(assembly)) if not each.kind and each.states < each.needed)


def explained(assembly: Sequence[str]) -> frozenset[int]:
    """Returns the lines of each `s_nop` without which a pair might have too few wait states."""
    lines = set[int]()
    for each in _dependencies(tuple(assembly)):
        if each.states - sum(each.nops.values()) < each.needed:
            lines |= each.nops.keys()
    return frozenset(lines)


def spacings(assembly: Sequence[str]) -> dict[str, list[Spacing]]:
    """Returns the pairs of each kind in the order of the text. A kind that is not there has enough."""
    pairs: dict[str, list[Spacing]] = {}
    for each in _dependencies(tuple(assembly)):
        if each.kind and each.states < each.needed:
            spacing = Spacing(each.states, each.needed, each.numbers, each.is_straight)
            pairs.setdefault(each.kind, []).append(spacing)
    return pairs


@functools.lru_cache(maxsize=2)
def _dependencies(assembly: tuple[str, ...]) -> tuple[Dependency, ...]:
    if not any(map(_TARGET.match, assembly)):
        return ()
    labels = {text[:-1]: number for number, text in enumerate(assembly) if text.endswith(":")}
    lines = [None if _is_outside(text) else _read(text) for text in assembly]
    return tuple(
        dependency
        for number, line in enumerate(lines)
        if line and (most := _most(line))
        for dependency in _behind(lines, labels, (number, line), most)
    )


def _behind(
    lines: Sequence[AssemblyLine | None],
    labels: Mapping[str, int],
    writer: tuple[int, AssemblyLine],
    most: int,
) -> Iterator[Dependency]:
    """Follows all paths from a line, while registers still hold what it wrote or reads."""
    first, line = writer
    seen: dict[int, tuple[int, frozenset[str]]] = {}
    paths: list[tuple[int, int, frozenset[str], Mapping[int, int], bool]]
    paths = [(first + 1, 0, _kept(line), {}, True)]
    while paths:
        number, states, live, nops, is_straight = paths.pop()
        others = states - sum(nops.values())
        is_implicit = not live.isdisjoint(_IMPLICIT)
        while number < len(lines) and others < most and live:
            reader = lines[number]
            number += 1
            if reader is None:
                before = seen.get(number)
                if before and before[0] <= states and live <= before[1]:
                    break
                seen[number] = states, live
                continue
            if is_implicit or not (live.isdisjoint(reader.reads) and live.isdisjoint(reader.results)):
                for needed, kind in _needed(line, reader, live):
                    if others < needed:
                        numbers = first + 1, number
                        yield Dependency(line, reader, numbers, states, needed, kind, nops, is_straight)
                live -= reader.results
                is_implicit = not live.isdisjoint(_IMPLICIT)
            if reader.opcode == "s_nop":
                nops = {**nops, number: reader.states}
            else:
                others += reader.states
            states += reader.states
            if reader.target in labels:
                is_straight = False
                paths.append((labels[reader.target], states, live, nops, False))
            if reader.is_end:
                break


def _is_outside(text: str) -> bool:
    """True for a label, and for a line that is no code."""
    return not text or text.endswith(":") or text.startswith((".", "-"))


def _most(writer: AssemblyLine) -> int:
    """How many wait states it may need before another."""
    if writer.is_matrix:
        return next(
            (most for shape, most in _MOST_OF_SHAPES if shape.search(writer.opcode)), _MOST_OF_MATRICES
        )
    if writer.is_vector:
        return _MOST if any(each[0] not in "va" or each == "vcc" for each in writer.results) else 3
    return 2 if _WIDE_STORE.match(writer.text) else int("m0" in writer.results)


def _kept(writer: AssemblyLine) -> frozenset[str]:
    """The registers that must not be read, or written, too early."""
    if writer.is_matrix:
        return writer.results | writer.operands[writer.sum_place]
    return writer.results if writer.results else _stored(writer)


def _stored(line: AssemblyLine) -> frozenset[str]:
    """The data of a store of more than 64 bits. Of a buffer's with an offset in a register, nothing."""
    if not _WIDE_STORE.match(line.text):
        return frozenset()
    is_buffer = line.opcode.startswith("buffer")
    if is_buffer and len(line.operands) > 3 and line.operands[3]:
        return frozenset()
    return line.operands[0 if is_buffer else 1]


def _needed(writer: AssemblyLine, reader: AssemblyLine, live: frozenset[str]) -> Iterator[tuple[int, str]]:
    """Yields the wait states between two instructions, with a kind where no table says how many."""
    if not writer.is_vector:
        if writer.results:
            yield (1 if "m0" in live and _READS_M0.match(reader.text) else 0), ""
        elif reader.is_vector and not live.isdisjoint(reader.results):
            yield 2, ""
    elif writer.is_matrix:
        for role in _roles(writer, reader, live):
            yield _most(writer), f"{_without_registers(writer)}: {role}"
    else:
        yield _of_vectors(writer, reader, live), ""


def _roles(writer: AssemblyLine, reader: AssemblyLine, live: frozenset[str]) -> Iterator[str]:
    """Yields what an instruction does with the registers of a matrix instruction before it."""
    results, added = writer.results & live, writer.operands[writer.sum_place] & live
    if reader.is_matrix:
        place = reader.sum_place
        factors = [each for n, each in enumerate(reader.operands) if n not in (0, place)]
        if any(not results.isdisjoint(each) for each in factors):
            yield f"`{reader.opcode}` multiplies its result"
        if not results.isdisjoint(reader.operands[place]):
            is_whole = reader.operands[place] == writer.results
            if not is_whole or _ADDS_LATE.search(writer.opcode):
                yield f"`{reader.opcode}` adds {'its result' if is_whole else 'a part of its result'}"
        elif not results.isdisjoint(reader.results):
            yield f"`{reader.opcode}` writes its result"
        return
    if not (reader.is_vector or _MEMORY.match(reader.opcode) or reader.opcode.startswith("ds_")):
        return
    name = "a vector instruction" if reader.is_vector else "an access of memory"
    if not results.isdisjoint(reader.reads):
        yield f"{name} reads its result"
    if not results.isdisjoint(reader.results):
        yield f"{name} writes its result"
    if not (added - results).isdisjoint(reader.results):
        yield f"{name} writes what it adds"


def _of_vectors(writer: AssemblyLine, reader: AssemblyLine, live: frozenset[str]) -> int:
    """Wait states between a vector instruction and one that may touch its results; 0 for none."""
    shared = live & reader.reads
    vectors = {each for each in shared if each[0] in "va" and each != "vcc"}
    scalars = shared - vectors
    touched = vectors | (live & reader.results)
    needed = [0]
    if vectors and reader.is_vector and _SPECIAL.match(writer.opcode) and not _SPECIAL.match(reader.opcode):
        needed.append(1)
    if touched and reader.is_vector and _writes_part(writer):
        needed.append(1)
    if vectors and _READS_LANE.match(reader.opcode):
        needed.append(1)
    if vectors and (reader.opcode.endswith("_dpp") or _EXCHANGES_LANES.match(reader.opcode)):
        needed.append(2)
    is_dot = bool(_DOT.match(writer.opcode))
    if vectors and reader.is_matrix and not is_dot:
        needed.append(2)
    if is_dot and touched and not reader.is_matrix:
        factors = frozenset[str]().union(*reader.operands[1:3])
        if reader.opcode != writer.opcode or not vectors.isdisjoint(factors):
            needed.append(3)
    if scalars and reader.is_vector:
        needed.append(2)
    if live & reader.named_lane or ("vcc" in live and "div_fmas" in reader.opcode):
        needed.append(4)
    if (scalars and _MEMORY.match(reader.opcode)) or ("exec" in live and _mixes_lanes(reader)):
        needed.append(5)
    return max(needed)


def _mixes_lanes(line: AssemblyLine) -> bool:
    pattern = r"v_(?:read|write|perm)\w*lane|\w+_dpp$"
    return line.is_matrix or bool(re.match(pattern, line.opcode))


def _writes_part(line: AssemblyLine) -> bool:
    """True if a line writes one half or byte of its result, which the operand selection names last."""
    if _WRITES_PART.search(line.text):
        return True
    chosen = _CHOSEN_HALVES.search(line.text)
    is_packed = line.opcode.startswith(("v_pk_", "v_dot")) or line.is_matrix
    return chosen is not None and not is_packed and "1" in chosen[1].split(",")[len(line.operands) - 1 :]


def _without_registers(line: AssemblyLine) -> str:
    """The instruction with its modifiers, which may decide how many passes it takes."""
    return f"`{' '.join(REGISTER.sub('', line.text).replace(',', ' ').split())}`"


@functools.lru_cache(maxsize=1 << 14)
def _read(text: str) -> AssemblyLine:
    opcode, _, rest = text.partition(" ")
    operands = tuple(registers_in(part) for part in _COMMA.split(rest))
    is_vector = opcode.startswith("v_")
    count = (2 if TWO_RESULTS.match(opcode) else 1) if is_vector or _LOADS.match(text) else 0
    if opcode.startswith("s_") and operands[0] == {"m0"}:
        count = 1
    if "lds" in text and not is_vector:
        count = 0
    if opcode.startswith("v_cmpx"):
        operands = frozenset({"exec"}), *operands
    results = frozenset[str]().union(*operands[:count])
    sources = operands if READS_RESULT.search(opcode) else operands[count:]
    named_lane = operands[2] if _NAMES_LANE.match(opcode) and len(operands) > 2 else frozenset[str]()
    jump = _JUMP.match(text)
    return AssemblyLine(
        text, opcode, operands, results, frozenset[str]().union(*sources), named_lane,
        is_vector=is_vector, is_matrix=_MATRIX.match(opcode) is not None,
        states=int(rest, 0) + 1 if opcode == "s_nop" else 1,
        target=jump[2] if jump else "", is_end=_ENDS.match(text) is not None,
    )  # fmt: skip
