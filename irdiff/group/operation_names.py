"""What a reader calls the operation of one line of IR or assembly. Pure.

`ttng.fence_async_shared` keeps its name; a call is named after its callee, inline assembly after its
instructions, and what LLVM IR and assembly have in masses after its class. Code stands in backticks. A name
is that of one operation; `plural` makes it that of several.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from irdiff.compare import instructions
from irdiff.compare.line_forms import MLIR_STAGES, operation

_CALLEE = re.compile(r"@([\w.$-]+)")
_ASSEMBLY = re.compile(r'(?:asm|inline_asm) [^"]*"([^"]*)"')
_ESCAPED = re.compile(r"\\[0-9A-Fa-f]{2}")
_INSTRUCTION = re.compile(r"(?:^|[;{]\s*)(?:@!?[$%\w]+\s+)?([a-z]\w*(?:\.[\w:]+)+)")
_TRANSLATED = ("llvm.", "nvvm.", "rocdl.")
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
FLAG = " flag"
_MAX_INSTRUCTIONS = 3
_MAX_NAME = 90

Name = Callable[[str, str], str]
"""The name of the operation in a line of a stage."""


def name_of(stage: str, text: str) -> str:
    """The name; empty for what every change of code touches: integer arithmetic, addresses, declarations."""
    found = operation(stage, text)
    if stage not in MLIR_STAGES:
        return _below(stage, found, text)
    if found.startswith(_TRANSLATED):
        return _translated(found, text)
    return _code(found) if "." in found and not found.startswith("module") else ""


def minor_name_of(stage: str, text: str) -> str:
    """The bare name of an operation for which `name_of` is empty; empty for what is no operation."""
    found = operation(stage, text)
    if text.startswith(("!", "@", "attributes", "}", "^")) or found in (
        "block",
        "define",
        "declare",
        "module",
    ):
        return ""
    if stage in MLIR_STAGES:
        return _code(found) if "." in found and not found.startswith("module") and "func" not in found else ""
    return _code(found) if re.fullmatch(r"[a-z][\w.]*", found) else ""


def assembly(text: str) -> tuple[str, ...]:
    """The instructions of inline assembly in one line, in their order; empty where it has none."""
    found = _ASSEMBLY.search(text)
    if not found:
        return ()
    return tuple(_INSTRUCTION.findall(_ESCAPED.sub(_unescaped, found.group(1))))


def plural(name: str, count: int) -> str:
    """The name as it follows a count: `calls of f`, `float instructions`."""
    if abs(count) == 1:
        return name
    if name.startswith("call of "):
        return "calls of " + name.removeprefix("call of ")
    if name in _CLASSES.values() or name.endswith((FLAG, " config")):
        return name + "s"
    return name


def _below(stage: str, found: str, text: str) -> str:
    kind = instructions.klass(stage, found, text)
    if kind in instructions.UNTELLING or text.startswith(("!", "@")):
        return ""
    if kind in _CLASSES:
        return _CLASSES[kind]
    if kind.startswith("asm "):
        return _inline(text)
    return _access(kind) or _code(found)


def _translated(found: str, text: str) -> str:
    """The name of an operation of the dialects that become LLVM IR."""
    kind = instructions.llvm_dialect(found, text)
    if kind in instructions.UNTELLING:
        return ""
    callee = _CALLEE.search(text) if found.startswith("llvm.call") else None
    if callee:
        return f"call of {_code(callee.group(1))}"
    if kind.startswith("asm "):
        return _inline(text)
    return _access(kind) if found in ("llvm.load", "llvm.store") else _code(found)


def _inline(text: str) -> str:
    """What inline assembly does, without the moves that prepare its operands."""
    found = assembly(text)
    does = [name for name in found if not name.startswith("mov.")] or found
    words = " ".join(list(dict.fromkeys(does))[:_MAX_INSTRUCTIONS])
    return f"inline {_code(words)}" if words else "inline assembly"


def _access(kind: str) -> str:
    verb, _, space = kind.partition(" ")
    if verb not in ("load", "store") or space not in _MEMORY:
        return ""
    return f"`{verb}` {'from' if verb == 'load' else 'to'} {_MEMORY[space]}"


def _code(name: str) -> str:
    return f"`{name.replace('`', chr(39))[:_MAX_NAME]}`"


def _unescaped(found: re.Match[str]) -> str:
    return chr(int(found.group()[1:], 16))
