"""The opcode of an instruction's line, and its class where edits are compared. Pure.

Instructions that a reader must see by name (synchronization, atomics, matrix units, memory by width) keep
it; the rest has its class (`ir.opcode_classes`).
"""

from __future__ import annotations

import functools
import re

from irdiff.ir import opcode_classes
from irdiff.ir.opcode_classes import BY_NAME
from irdiff.stages import Stage

_LLVM_OPCODE = re.compile(
    r"(?:%[\w.$-]+ = )?(?:(?:tail|musttail|notail) )?([a-z]\w*)"
    r"(?:.*?@([\w.$-]+)\()?(?:.*?asm [a-z ]*\"(\S*))?"
)
_PTX_OPCODE = re.compile(r"(?:\{\s*)?(?:@!?%\w+ )?([a-z]\w*(?:[.:][\w:]+)*)")
_FIRST_WORD = re.compile(r"\S+")
_FAST_MATH = frozenset({"fast", "nnan", "ninf", "nsz", "arcp", "contract", "afn", "reassoc"})
_INTEGER_FLAGS = frozenset({"nsw", "nuw", "exact", "disjoint", "nneg", "samesign", "inbounds"})
_INFERRED = {"nofree", "readnone", "readonly", "writeonly", "nocapture", "captures(none)", "noundef"}
_LLVM_FLAGS = _FAST_MATH | _INTEGER_FLAGS | _INFERRED
_PTX_FLAGS = frozenset({"rn", "rz", "rm", "rp", "rni", "rzi", "ftz", "sat", "approx", "full", "relu"})
_ATTRIBUTE = re.compile(r"[\w-]+(?:\([^()]*\))?")
_SPACES = {"1": "global", "3": "shared", "4": "constant", "5": "local", "7": "buffer", "8": "buffer"}

OTHERS = "other instructions"
# fmt: off
UNTELLING = frozenset({
    "integer arithmetic", "addresses and casts", "vector shuffles", "control flow", "declarations",
    "directives", "moves", "scalar loads",
})
# fmt: on
"""Classes that every change of lowering or optimization touches."""


def opcode(stage: str, line: str) -> str:
    if stage == Stage.PTX:
        found = _PTX_OPCODE.match(line)
        return found.group(1) if found else line.partition(" ")[0]
    if stage == Stage.LLIR:
        called = _LLVM_OPCODE.match(line)
        if not called:
            return line.partition(" ")[0]
        return (called.group(1) == "call" and (called.group(2) or called.group(3))) or called.group(1)
    word = _FIRST_WORD.match(line)
    return word.group() if word else ""


def klass(stage: str, name: str, line: str) -> str:
    """The class of an opcode, or the opcode itself where a reader must see it."""
    if stage == Stage.LLIR:
        return _llvm_class(name, line)
    return _assembly_class(stage, name)


@functools.lru_cache(maxsize=1 << 12)
def _assembly_class(stage: str, name: str) -> str:
    if BY_NAME.search(name):
        return re.sub(r"\d+(?=x|$)", "N", name)
    return opcode_classes.klass(stage, name) or name


def llvm_dialect(name: str, line: str) -> str:
    """The class of an operation of MLIR's LLVM, NVVM or ROCDL dialect."""
    short = name.split(".", 1)[1]
    if short.startswith("call") or short == "inline_asm":
        quoted = re.search(r'"([^"]*)"|@([\w.$-]+)', line)
        short = next((text for text in (quoted.groups() if quoted else ()) if text), short)
    return _llvm_class(short, line)


def _llvm_class(name: str, line: str) -> str:
    asm = re.search(r'asm [a-z ]*"([^"]*)"|inline_asm [^"]*"([^"]*)"', line) if "asm " in line else None
    if asm:
        text = next(part for part in asm.groups() if part is not None)
        words = re.findall(r"(?:@\S+ )?\b([a-z]\w*(?:\.[\w:]+)+)", text)
        return "asm " + " ".join(dict.fromkeys(words))[:120]
    if name in ("load", "store", "alloca"):
        space = re.search(r"addrspace\((\d)\)|<(\d)>", line)
        number = next((text for text in space.groups() if text), "0") if space else "0"
        return f"{name} {_SPACES.get(number, 'memory')}"
    return _named_class(name)


@functools.lru_cache(maxsize=1 << 12)
def _named_class(name: str) -> str:
    """The class of an LLVM operation without its operands."""
    if BY_NAME.search(name):
        return re.sub(r"\d+", "N", name)
    bare = re.sub(r"^(?:llvm\.)?(?:nvvm\.|amdgcn\.|intr\.)?", "", name)
    return opcode_classes.klass(Stage.LLIR, bare) or re.sub(r"\d+", "N", bare)


def flags(stage: str, line: str) -> frozenset[str]:
    """Flags that change what an instruction may do: fast-math, wrapping, inferred attributes, rounding."""
    if stage == Stage.LLIR:
        return _LLVM_FLAGS.intersection(_ATTRIBUTE.findall(line))
    if stage == Stage.PTX:
        return _PTX_FLAGS.intersection(opcode(stage, line).split(".")[1:])
    return frozenset()
