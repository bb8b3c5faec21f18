"""Names the operation of one line of IR or assembly for a reader.

`ttng.fence_async_shared` keeps its name; a call is named after its callee, inline assembly after its
instructions, and frequent operations of LLVM IR and assembly after their class. Code stands in backticks. A
name is that of one operation; `plural` makes it that of several.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from irdiff.ir.opcode_classes import UNTELLING
from irdiff.ir.parsed_line import LineKind, ParsedLine, inline_assembly

_CALLEE = re.compile(r"@([\w.$-]+)")
_MEMORY = {
    "global": "global memory",
    "shared": "shared memory",
    "constant": "constant memory",
    "local": "local memory",
    "buffer": "a buffer",
    "memory": "memory",
}
_CLASSES = {
    "float": "float instruction",
    "float conversions": "float conversion",
    "conversions": "conversion",
    "lane exchange": "lane exchange",
}
_DECLARATIONS = ("block", "define", "declare", "module")
_ACCESS = re.compile(r"`(load|store)` (?=from|to)")
FLAG = " flag"
_MAX_INSTRUCTIONS = 3
_MAX_NAME = 90

Name = Callable[[ParsedLine], str]
"""The name of an operation."""


def name_of(each: ParsedLine) -> str:
    """Returns nothing for what every change of code touches: integer arithmetic, addresses, declarations."""
    if each.kind is LineKind.OPERATION:
        return _code(each.operation) if _is_operation(each.operation) else ""
    if each.klass in UNTELLING or each.text.startswith(("!", "@")):
        return ""
    if each.kind is LineKind.TRANSLATED:
        return _translated(each)
    if each.klass in _CLASSES:
        return _CLASSES[each.klass]
    if each.klass.startswith("asm "):
        return _inline(each.text)
    return _access(each.klass) or _code(each.operation)


def minor_name_of(each: ParsedLine) -> str:
    """Returns the bare name of an operation for which `name_of` is empty."""
    name = each.operation
    if each.text.startswith(("!", "@", "attributes", "}", "^")) or name in _DECLARATIONS:
        return ""
    if each.kind is not LineKind.INSTRUCTION:
        return _code(name) if _is_operation(name) and "func" not in name else ""
    return _code(name) if re.fullmatch(r"[a-z][\w.]*", name) else ""


def plural(name: str, count: int) -> str:
    """Returns the name as it follows a count: `calls of f`, `float instructions`."""
    if abs(count) == 1:
        return name
    if name.startswith("call of "):
        return "calls of " + name.removeprefix("call of ")
    if _ACCESS.match(name):
        return _ACCESS.sub(r"`\1`s ", name)
    if name in _CLASSES.values() or name.endswith((FLAG, " config")) or name == "call":
        return name + "s"
    return name


def _is_operation(name: str) -> bool:
    return "." in name and not name.startswith("module")


def _translated(each: ParsedLine) -> str:
    callee = _CALLEE.search(each.text) if each.operation.startswith("llvm.call") else None
    if callee:
        return f"call of {_code(callee.group(1))}"
    if each.klass.startswith("asm "):
        return _inline(each.text)
    return _access(each.klass) if each.operation in ("llvm.load", "llvm.store") else _code(each.operation)


def _inline(text: str) -> str:
    """Names the instructions of inline assembly, without the moves that prepare its operands."""
    instructions = inline_assembly(text)
    does = [name for name in instructions if not name.startswith("mov.")] or instructions
    words = " ".join(list(dict.fromkeys(does))[:_MAX_INSTRUCTIONS])
    return f"inline assembly {_code(words)}" if words else "inline assembly"


def _access(kind: str) -> str:
    verb, _, space = kind.partition(" ")
    if verb not in ("load", "store") or space not in _MEMORY:
        return ""
    return f"`{verb}` {'from' if verb == 'load' else 'to'} {_MEMORY[space]}"


def _code(name: str) -> str:
    return f"`{name.replace('`', chr(39))[:_MAX_NAME]}`"
