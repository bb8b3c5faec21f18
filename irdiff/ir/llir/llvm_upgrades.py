"""Decides whether reading could make two texts of LLVM IR equal although their operations differ.

Reading changes no operation but calls of intrinsics that are out of date. Those that both sides have, it
changes alike; so it can matter only where one side alone has an intrinsic that this LLVM upgrades. Their
declarations show that, and are quickly read: LLVM upgrades them too, and prints current ones as they were.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from irdiff.ir.canonical import Reprint

INTRINSIC = re.compile(r"@(llvm\.[\w.]+)")
_DECLARATION = re.compile(r"^declare [^@\n]*@(llvm\.[\w.]+)\([^\n]*\)", re.M)
_DEBUG = re.compile(r"(?<=declare )!dbg !\d+ ")
_TYPE = r"(?:ptr(?: addrspace\(\d+\))?|<[^<>]*>|\{[^{}]*\}|\[[^\[\]]*\]|[\w.]++)"
_SIGNATURE = re.compile(rf"^declare (?:[^@\n]*? )??({_TYPE}) @(llvm\.[\w.]+)\(([^\n]*)\)", re.M)
_PARAMETER = re.compile(rf"(?:^|, )({_TYPE})")


_OPERATION = re.compile(r"(?:%\S+ = )?([a-z]+)(?= |$)")


def has_same_operations(base: Iterable[str], head: Iterable[str]) -> bool:
    """Compares the operations of two texts, given as canonical lines, in their order."""
    left, right = ([match[1] for match in map(_OPERATION.match, lines) if match] for lines in (base, head))
    return left == right


def may_be_made_equal(base: str, head: str, reprint: Reprint) -> bool:
    """True if reading could make texts equal whose operations differ, and in doubt."""
    names = frozenset(INTRINSIC.findall(base)) ^ frozenset(INTRINSIC.findall(head))
    if not names:
        return False
    declarations = {m[1]: m[0] for text in (base, head) for m in _DECLARATION.finditer(text) if m[1] in names}
    if declarations.keys() != names:
        return True
    alone = _DEBUG.sub("", "\n".join(declarations.values()) + "\n")
    before, printed = _signatures(alone), reprint(alone).text
    return printed is None or before.keys() != names or before != _signatures(printed)


def _signatures(text: str) -> dict[str, tuple[str, list[str]]]:
    """Result and parameter types of each intrinsic, by its name. LLVM sets their attributes itself."""
    return {name: (kind, _PARAMETER.findall(rest)) for kind, name, rest in _SIGNATURE.findall(text)}
