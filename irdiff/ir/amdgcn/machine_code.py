"""The instructions of one kernel of an assembly, with their operands. Only the form is read here.

Source: LLVM, "Syntax of AMDGPU Instruction Operands" and "User Guide for AMDGPU Backend" (`.amdhsa_*`,
preloaded kernel arguments, code object metadata).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from irdiff.errors import NormalizeError

MAX_INSTRUCTIONS = 200_000
_MAX_LINE = 1_000
_MAX_SETTING = 1_024
_REGISTERS = {"v": 256, "a": 256, "s": 128}
_MAX_TOGETHER = 32
"""Registers that one operand names: an accumulator of 32 × 32."""
_LABEL = re.compile(r"([\w.$]+):")
_OPCODE = re.compile(r"(?:s|v|ds|global|buffer|flat|scratch|tbuffer)_[a-z0-9_]+")
_PIECE = re.compile(r",\s*(?![^\[(]*[\])])")
_REGISTER = re.compile(r"([vsa])(?:(\d{1,4})|\[(\d{1,4}):(\d{1,4})\])$")
_DIRECTIVE = re.compile(r"\.amdhsa_(\w+)\s+(\d+)\s*$")
_HIDDEN = re.compile(r"\.offset:\s+(\d+)\s+\.size:\s+(\d+)\s+\.value_kind:\s+hidden_(\w+)")
_SPECIAL = {
    "vcc": ("s", 106, 2),
    "vcc_lo": ("s", 106, 1),
    "vcc_hi": ("s", 107, 1),
    "m0": ("s", 124, 1),
    "exec": ("s", 126, 2),
    "exec_lo": ("s", 126, 1),
    "exec_hi": ("s", 127, 1),
    "scc": ("scc", 0, 1),
}
_PRELOADED_ENTRY_ALIGNMENT = ".p2align\t8"
"""Stands before the code at which a processor starts that has preloaded the arguments, 256 bytes behind the
entry: what is before loads them."""


@dataclass(frozen=True, slots=True, eq=False)
class MachineOperand:
    kind: str
    """`v`, `a`, `s` (with VCC, EXEC and M0), `scc`, `imm`, `text`."""
    number: int = 0
    """The number of the first register, or the value of an immediate."""
    count: int = 1
    """Registers."""
    text: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class MachineLine:
    """One instruction, wherever it stands."""

    opcode: str
    """Without `_e32` and `_e64`."""
    operands: tuple[MachineOperand, ...]
    modifiers: Mapping[str, str]
    """`offset` → `16`, `offen` → ``."""
    label: str
    """Where a branch leads."""
    text: str


@dataclass(frozen=True, kw_only=True)
class MachineKernel:
    name: str
    lines: tuple[MachineLine, ...]
    places: Mapping[str, int]
    """Label → index of the instruction behind it."""
    settings: Mapping[str, int]
    """`.amdhsa_…` of the kernel descriptor."""
    hidden: Mapping[str, tuple[int, int]]
    """Argument that the runtime passes → its offset and size, in bytes."""


def read(text: str, kernel: str) -> MachineKernel:
    """Raises NormalizeError where there is no such kernel, or its text cannot be read."""
    settings = {name: int(value) for name, value in _settings(text, kernel)}
    preloads = settings.get("user_sgpr_kernarg_preload_length", 0) > 0
    lines: list[MachineLine] = []
    places: dict[str, int] = {}
    inside = False
    for raw in text.split("\n"):
        if not inside:
            inside = raw.startswith(f"{kernel}:")
            continue
        if preloads and raw.strip() == _PRELOADED_ENTRY_ALIGNMENT:
            lines.clear()
            preloads = False
            continue
        if raw[:1] == "\t":
            if _OPCODE.match(raw, 1):
                if len(raw) > _MAX_LINE and ";" not in raw[:_MAX_LINE]:
                    raise NormalizeError(f"{kernel} has an instruction of {len(raw):,} characters")
                lines.append(line_of(raw.partition(";")[0].strip()))
                if len(lines) > MAX_INSTRUCTIONS:
                    raise NormalizeError(f"{kernel} has over {MAX_INSTRUCTIONS:,} instructions")
        elif label := _LABEL.match(raw):
            if label[1].startswith(".Lfunc_end"):
                break
            places[label[1]] = len(lines)
    if not lines:
        raise NormalizeError(f"the assembly has no code of a kernel {kernel!r}")
    return MachineKernel(
        name=kernel, lines=tuple(lines), places=places, settings=settings, hidden=dict(_hidden(text))
    )


def _settings(text: str, kernel: str) -> Iterator[tuple[str, str]]:
    begin = text.find(f".amdhsa_kernel {kernel}\n")
    end = text.find(".end_amdhsa_kernel", begin)
    if begin >= 0:
        for line in text[begin:end].split("\n"):
            directive = _DIRECTIVE.match(line.strip()) if len(line) < _MAX_LINE else None
            if directive and int(directive[2]) <= _MAX_SETTING:
                yield directive[1], directive[2]


def _hidden(text: str) -> Iterator[tuple[str, tuple[int, int]]]:
    for offset, size, name in _HIDDEN.findall(text):
        yield name, (int(offset), int(size))


@functools.lru_cache(maxsize=1 << 16)
def line_of(text: str) -> MachineLine:
    opcode, _, rest = text.partition(" ")
    pieces = _PIECE.split(rest.strip()) if rest.strip() else []
    modifiers: dict[str, str] = {}
    operands: list[MachineOperand] = []
    label = ""
    for piece in pieces:
        word, *others = piece.split()
        operands.append(_operand(word))
        for other in others:
            name, _, value = other.partition(":")
            modifiers[name] = value
    if opcode.startswith(("s_branch", "s_cbranch")) and operands:
        label = operands[0].text
    return MachineLine(
        opcode.removesuffix("_e32").removesuffix("_e64"), tuple(operands), modifiers, label, text
    )


@functools.lru_cache(maxsize=1 << 14)
def _operand(word: str) -> MachineOperand:
    if match := _REGISTER.match(word):
        kind, one, first, last = match.groups()
        begin, end = (int(one), int(one)) if one is not None else (int(first), int(last))
        if begin <= end < min(_REGISTERS[kind], begin + _MAX_TOGETHER):
            return MachineOperand(kind, begin, end - begin + 1, word)
        return MachineOperand("text", 0, 0, word)
    if word in _SPECIAL:
        return MachineOperand(*_SPECIAL[word], word)
    try:
        return MachineOperand("imm", int(word, 0), 0, word)
    except ValueError:
        return MachineOperand("text", 0, 0, word)
