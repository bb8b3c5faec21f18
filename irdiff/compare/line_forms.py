"""What one canonical line says: its operation and types, and the line without numbers or parameters. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable

from irdiff import stages
from irdiff.compare import instructions
from irdiff.stages import Stage

MLIR_STAGES = stages.MLIR | {"mlir"}
_OPERATION = re.compile(
    r'(?:%[^="]*= )?"?((?:[a-z_]\w*\.)+[a-z_]\w*|module\b|module attribute [^ =]+|return\b)'
)
_LAYOUT_KIND = re.compile(r"#(\w+\.\w+)<")
_TYPE_HEAD = re.compile(r"(?:tensor|memref|vector|![\w.]+)<|#[\w.]+<")
_NUMBER = re.compile(r"(?<![\w.#])-?(?:0x[0-9A-Fa-f]+|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)(?![\w])")
_SCALAR = re.compile(r"(?<![\w.#])(?:b?f\d+|tf32|i\d+|index|f8E\w+)\b")
_SSA = re.compile(r"[%^][\w.$-]+(?:#\d+)?|![0-9]+\b")
_PTX_NAMES = re.compile(r"%(?:[a-z]+)\d+|\$L\d+")
_REGISTERS = re.compile(r"\b([avs]|R|UR|P|UP|B)\d+\b|\b([avs])\[\d+:\d+\]|\.L\d+")


def operation(stage: str, line: str) -> str:
    """The operation or opcode of one canonical line."""
    if stage in MLIR_STAGES:
        found = _OPERATION.match(line)
        return found.group(1) if found else "block" if line.startswith("^") else line.partition(" ")[0]
    return instructions.opcode(stage, line)


def blanking(stage: str) -> Callable[[str], str]:
    """Takes the numbers of values or registers out of a line of a stage, or out of several at once."""
    if stage in (Stage.AMDGCN, Stage.SASS):
        return lambda line: _REGISTERS.sub(r"\1\2", line)
    if stage == Stage.PTX:
        return lambda line: _PTX_NAMES.sub("%", line)
    return lambda line: _SSA.sub("%", line)


def without_parameters(line: str) -> str:
    """Types without shape and layout, and no numbers."""
    return _SCALAR.sub("T", _NUMBER.sub("N", typeless(line)))


def typeless(line: str) -> str:
    """The line without the parameters of types and without value numbers."""
    parts, position = [], 0
    for match in _TYPE_HEAD.finditer(line):
        if match.start() < position:
            continue
        parts.append(line[position : match.start()] + line[match.start() : match.end() - 1])
        position = closing(line, match.end())
    parts.append(line[position:])
    return _SSA.sub("%", "".join(parts))


def closing(line: str, start: int) -> int:
    """The position behind the `>` that closes the `<` before `start`, or the end of the line without one."""
    depth = 1
    for index in range(start, len(line)):
        if line[index] == "<":
            depth += 1
        elif line[index] == ">" and line[index - 1] != "-":
            depth -= 1
            if depth == 0:
                return index + 1
    return len(line)


def layout_kinds(line: str) -> frozenset[str]:
    """`ttg.blocked`, `ttg.nvidia_mma`, …: of the types in one canonical line."""
    return frozenset(_LAYOUT_KIND.findall(line))


def types(line: str) -> list[str]:
    """The types with parameters, without value numbers."""
    found, position = [], 0
    for match in _TYPE_HEAD.finditer(line):
        if match.start() >= position:
            position = closing(line, match.end())
            found.append(_SSA.sub("%", line[match.start() : position]))
    return found
