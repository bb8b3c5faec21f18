"""LLVM IR's operations by class, also as MLIR spells them. Names follow the LLVM Language Reference."""

from __future__ import annotations

import functools
import re

from irdiff.ir.opcode_classes import BY_NAME, INTEGER, OpcodeClass, klass

TABLE = (
    OpcodeClass(r"f(?:add|sub|mul|div|rem|neg|cmp)$|fma|fmul|exp|log|sqrt|sin|cos", "", "float"),
    OpcodeClass(r"maxnum|minnum|maximum|minimum", "", "float"),
    OpcodeClass(r"(?:add|sub|mul|[su]div|[su]rem|shl|[al]shr|and|or|xor|icmp|select|freeze)$", "", INTEGER),
    OpcodeClass(r"s?min|s?max|abs|bfe|prmt|lop3|fsh[lr]|ctpop|ctlz|bitreverse|bswap|mulhi", "", INTEGER),
    OpcodeClass(r"mlir\.|func$|workitem|workgroup|read\.ptx\.sreg|readfirstlane|warp_id", "", INTEGER),
    OpcodeClass(r"(?:getelementptr|ptrtoint|inttoptr|addrspacecast|bitcast)$", "", "addresses and casts"),
    OpcodeClass(r"(?:sext|zext|trunc)$", "", "addresses and casts"),
    OpcodeClass(r"fp\w*$|[su]itofp$|cvt", "", "float conversions"),
    OpcodeClass(r"(?:insert|extract)(?:element|value)$|shufflevector$", "", "vector shuffles"),
    OpcodeClass(r"undef|poison|mov\.b|constant", "", "vector shuffles"),
    OpcodeClass(r"br$|switch$|phi$|ret$|unreachable$|cond_br|%?[\w.$-]+:$", "", "control flow"),
    OpcodeClass(r"define$|declare$|attributes$|assume", "", "declarations"),
)
_SPACES = {"1": "global", "3": "shared", "4": "constant", "5": "local", "7": "buffer", "8": "buffer"}
_ASSEMBLY = re.compile(r'asm [a-z ]*"([^"]*)"|inline_asm [^"]*"([^"]*)"')
_IN_ASSEMBLY = re.compile(r"(?:@\S+ )?\b([a-z]\w*(?:\.[\w:]+)+)")
_SPACE = re.compile(r"addrspace\((\d)\)|<(\d)>")
INTRINSIC_PREFIXES = ("llvm", "nvvm", "amdgcn")
"""With which names of intrinsics begin, joined by dots."""
_PREFIX = re.compile(r"^(?:llvm\.)?(?:nvvm\.|amdgcn\.|intr\.)?")


def class_of(name: str, line: str) -> str:
    """The class of an operation in an edit, or its name where a reader must see it."""
    asm = _ASSEMBLY.search(line) if "asm " in line else None
    if asm:
        text = next(part for part in asm.groups() if part is not None)
        return "asm " + " ".join(dict.fromkeys(_IN_ASSEMBLY.findall(text)))[:120]
    if name in ("load", "store", "alloca"):
        space = _SPACE.search(line)
        number = next((text for text in space.groups() if text), "0") if space else "0"
        return f"{name} {_SPACES.get(number, 'memory')}"
    return _named_class(name)


@functools.lru_cache(maxsize=1 << 12)
def _named_class(name: str) -> str:
    """The class of an operation without its operands."""
    if BY_NAME.search(name):
        return re.sub(r"\d+", "N", name)
    bare = _PREFIX.sub("", name)
    return klass(TABLE, bare) or re.sub(r"\d+", "N", bare)
