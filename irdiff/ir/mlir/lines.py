"""The parts of one canonical line of MLIR: its operation, types and layouts, and the line without them."""

from __future__ import annotations

import re

_OPERATION = re.compile(
    r'(?:%[^="]*= )?"?((?:[a-z_]\w*\.)+[a-z_]\w*|module\b|module attribute [^ =]+|return\b)'
)
_LAYOUT_KIND = re.compile(r"#(\w+\.\w+)<")
_LAYOUT = re.compile(r"#(\w+\.\w+)<\{((?:[^{}]|\{[^{}]*\})*)\}>")
_PARAMETER = re.compile(r"(\w+) = (\[[^=]*\]|[^,{}=]+)")
_TYPE_HEAD = re.compile(r"(?:tensor|memref|vector|![\w.]+)<|#[\w.]+<")
_ANGLE = re.compile(r"<|(?<!-)>")
_NUMBER = re.compile(r"(?<![\w.#])-?(?:0x[0-9A-Fa-f]+|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)(?![\w])")
_SCALAR = re.compile(r"(?<![\w.#])(?:b?f\d+|tf32|i\d+|index|f8E\w+)\b")
_VALUE = re.compile(r"[%^][\w.$-]+(?:#\d+)?|![0-9]+\b")


def operation(line: str) -> str:
    match = _OPERATION.match(line)
    return match.group(1) if match else "block" if line.startswith("^") else line.partition(" ")[0]


def blank(text: str) -> str:
    """One or several lines without the numbers of values."""
    return _VALUE.sub("%", text)


def without_numbers(typeless_line: str) -> str:
    return _SCALAR.sub("T", _NUMBER.sub("N", typeless_line))


def typeless(line: str) -> str:
    """The line without the parameters of types and without value numbers."""
    parts, position = [], 0
    for match in _TYPE_HEAD.finditer(line):
        if match.start() < position:
            continue
        parts.append(line[position : match.start()] + line[match.start() : match.end() - 1])
        position = closing(line, match.end())
    parts.append(line[position:])
    return blank("".join(parts))


def closing(line: str, start: int) -> int:
    """The position behind the `>` that closes the `<` before `start`, or the end of the line without one."""
    depth = 1
    for angle in _ANGLE.finditer(line, start):
        depth += 1 if angle[0] == "<" else -1
        if depth == 0:
            return angle.end()
    return len(line)


def layout_kinds(line: str) -> frozenset[str]:
    """`ttg.blocked`, `ttg.nvidia_mma`, …: of the types in one canonical line."""
    return frozenset(_LAYOUT_KIND.findall(line))


def layout_parameters(kind: str, line: str) -> dict[str, str]:
    """The parameters of the first layout of a kind in a line."""
    bodies = (match.group(2) for match in _LAYOUT.finditer(line) if match.group(1) == kind)
    return {name: value.strip() for name, value in _PARAMETER.findall(next(bodies, ""))}


def types(line: str) -> tuple[str, ...]:
    """The types with parameters, without value numbers."""
    type_list, position = [], 0
    for match in _TYPE_HEAD.finditer(line):
        if match.start() >= position:
            position = closing(line, match.end())
            type_list.append(blank(line[match.start() : position]))
    return tuple(type_list)
