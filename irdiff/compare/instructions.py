"""Opcodes of instruction lines, and the class each stands for when edits are compared. Pure.

Instructions that a reader must see by name (synchronization, atomics, matrix units, memory by width,
conversions' rounding) keep it; the rest is a class. Names follow the LLVM Language Reference, the PTX ISA
and the AMD CDNA ISA documents.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping

from irdiff.stages import Stage

_LLVM_OPCODE = re.compile(
    r"(?:%[\w.$-]+ = )?(?:(?:tail|musttail|notail) )?([a-z]\w*)"
    r"(?:.*?@([\w.$-]+)\()?(?:.*?asm [a-z ]*\"(\S*))?"
)
_PTX_OPCODE = re.compile(r"(?:\{\s*)?(?:@!?%\w+ )?([a-z]\w*(?:[.:][\w:]+)*)")
_FIRST_WORD = re.compile(r"\S+")
_FAST_MATH = frozenset({"fast", "nnan", "ninf", "nsz", "arcp", "contract", "afn", "reassoc"})
_INTEGER_FLAGS = frozenset({"nsw", "nuw", "exact", "disjoint", "nneg", "samesign", "inbounds"})
_INFERRED = frozenset(
    {"nofree", "readnone", "readonly", "writeonly", "nocapture", "captures(none)", "noundef"}
)
_ATTRIBUTE = re.compile(r"[\w-]+(?:\([^()]*\))?")

_KEPT = re.compile(
    r"fence|barrier|bar\.|mbarrier|wait|atom|red\.|cmpxchg|mma|mfma|wgmma|tcgen05|cp\.async|tma|ldmatrix"
    r"|stmatrix|nanosleep|membar|depbar|s_sched|s_setprio|lds_|ds_read|ds_write|griddep|elect|cluster"
)
_LLVM_CLASSES = (
    (r"f(?:add|sub|mul|div|rem|neg|cmp)$|fma|fmul|exp|log|sqrt|sin|cos", "float"),
    (r"maxnum|minnum|maximum|minimum", "float"),
    (
        r"add$|sub$|mul$|shl$|[al]shr$|and$|or$|xor$|icmp$|select$|[su]div$|[su]rem$|freeze$",
        "integer arithmetic",
    ),
    (r"mlir\.|workitem|workgroup|read\.ptx\.sreg|readfirstlane|warp_id|func$", "integer arithmetic"),
    (r"s?min|s?max|abs|bfe|prmt|lop3|fsh[lr]|ctpop|ctlz|bitreverse|bswap|mulhi", "integer arithmetic"),
    (r"getelementptr$|ptrtoint$|inttoptr$|addrspacecast$|bitcast$", "addresses and casts"),
    (r"sext$|zext$|trunc$", "addresses and casts"),
    (r"fp\w*$|[su]itofp$|cvt", "float conversions"),
    (r"(?:insert|extract)(?:element|value)$|shufflevector$|undef|poison|mov\.b|constant", "vector shuffles"),
    (r"br$|switch$|phi$|ret$|unreachable$|cond_br|%?[\w.$-]+:$", "control flow"),
    (r"define$|declare$|attributes$|assume", "declarations"),
)
_PTX_CLASSES = (
    (r"(?:fma|ex2|lg2|rcp|sqrt|rsqrt|tanh|sin|cos)\b", "float"),
    (r"(?:add|sub|mul|div|neg|max|min|abs|setp|selp)\.(?:\w+\.)*b?f", "float"),
    (
        r"(?:add|sub|mul|mad|shl|shr|shf|and|or|xor|not|setp|selp|min|max|div|rem|abs|neg)\b",
        "integer arithmetic",
    ),
    (r"(?:lop3|bfe|bfi|bfind|prmt|popc|clz|brev|dp4a|mad24|mul24|slct|sad|cnot)\b", "integer arithmetic"),
    (r"(?:fns|bmsk|szext)\b", "integer arithmetic"),
    (r"mov\b|cvta\b", "moves"),
    (r"cvt\b", "conversions"),
    (r"bra\b|ret\b|call\b|exit\b|\$L|brx", "control flow"),
    (r"\.|\{|\}", "directives"),
)
_AMD_CLASSES = (
    (r"v_(?:pk_)?(?:fma|mac|mad)_", "float"),
    (r"v_(?:pk_)?(?:add|sub|subrev|mul|max|min|exp|log|rcp|rsq|sqrt|cmp\w*|ldexp)_(?:legacy_)?f", "float"),
    (r"v_(?:pk_)?cvt", "conversions"),
    (r"v_mov|v_accvgpr|s_mov|s_cmov|v_readlane|v_writelane|v_readfirstlane|v_swap", "moves"),
    (r"s_c?branch|s_endpgm|\.L|s_setpc|s_getpc|s_nop|s_code", "control flow"),
    (r"v_perm|ds_bpermute|ds_permute|ds_swizzle|\w*dpp", "lane exchange"),
    (r"s_load", "scalar loads"),
    (r"[vs]_", "integer arithmetic"),
)
_CLASSES: Mapping[str, tuple[tuple[str, str], ...]] = {
    Stage.PTX: _PTX_CLASSES,
    Stage.AMDGCN: _AMD_CLASSES,
}

OTHERS = "other instructions"
UNTELLING = frozenset(
    {
        "integer arithmetic",
        "addresses and casts",
        "vector shuffles",
        "control flow",
        "declarations",
        "directives",
        "moves",
        "scalar loads",
    }
)
"""Classes that every change of lowering or optimization touches."""


def opcode(stage: str, line: str) -> str:
    if stage == Stage.PTX:
        found = _PTX_OPCODE.match(line)
        return found.group(1) if found else line.partition(" ")[0]
    if stage == Stage.LLIR:
        called = _LLVM_OPCODE.match(line)
        if not called:
            return line.partition(" ")[0]
        return (
            called.group(2) or called.group(3) or called.group(1)
            if called.group(1) == "call"
            else called.group(1)
        )
    word = _FIRST_WORD.match(line)
    return word.group() if word else ""


def klass(stage: str, name: str, line: str) -> str:
    """The class of an opcode, or the opcode itself where a reader must see it."""
    if stage == Stage.LLIR:
        return _llvm_class(name, line)
    return _assembly_class(stage, name)


@functools.lru_cache(maxsize=1 << 12)
def _assembly_class(stage: str, name: str) -> str:
    table = _CLASSES.get(stage, ())
    if _KEPT.search(name):
        return re.sub(r"\d+(?=x|$)", "N", name)
    return next((title for pattern, title in table if re.match(pattern, name)), name)


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
    """Of an operation of LLVM's whose operands say nothing."""
    if _KEPT.search(name):
        return re.sub(r"\d+", "N", name)
    bare = re.sub(r"^(?:llvm\.)?(?:nvvm\.|amdgcn\.|intr\.)?", "", name)
    return next(
        (title for pattern, title in _LLVM_CLASSES if re.match(pattern, bare)), re.sub(r"\d+", "N", bare)
    )


_SPACES = {
    "0": "memory",
    "1": "global",
    "3": "shared",
    "4": "constant",
    "5": "local",
    "7": "buffer",
    "8": "buffer",
}


def flags(stage: str, line: str) -> frozenset[str]:
    """Flags that change what an instruction may do: fast-math, wrapping, inferred attributes, rounding."""
    if stage == Stage.LLIR:
        words = set(_ATTRIBUTE.findall(line))
        return frozenset(words & (_FAST_MATH | _INTEGER_FLAGS | _INFERRED))
    if stage == Stage.PTX:
        return frozenset(opcode(stage, line).split(".")[1:]) & frozenset(
            {"rn", "rz", "rm", "rp", "rni", "rzi", "ftz", "sat", "approx", "full", "relu"}
        )
    return frozenset()
