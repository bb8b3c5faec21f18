"""LLVM IR read, verified and printed again by the LLVM inside llvmlite. `llvm_process` runs it as a child.

Why texts that agree afterwards are the same: both sides go through the same parser, verifier and printer,
each a function of its input, and text and memory are two forms of one language, so what is printed means
what was read. What this adds to the lexical rules are the upgrades (LLVM's AutoUpgrade.cpp) that every LLVM
does to what older ones wrote, by its promise to read it with its old meaning; constant expressions, default
alignments and attributes of intrinsics come out in one spelling. It is neither asked to change the code nor
to judge it, and the machine code still has the last word: where two compilers of different versions made
different code from what means the same, the case is `changed`.

Crashes: LLVM aborts the process on broken IR in one place met by fuzzing (132 of 74,000 mutants), the
verification inside the upgrade of debug information (`UpgradeDebugInfo` in AutoUpgrade.cpp). It runs only
where the module flag `Debug Info Version` is current, so the flag's name is changed first, which makes
LLVM drop debug information instead (there is none left by then); broken IR then ends as an error. LLVM's
parser recurses on nested types and constants, so texts nested deeper than any real one are not given to
it. Its build has assertions: one more abort (1 of 87,000 mutants) came from letters in an inline-assembly
constraint that no GPU backend has, so those are kept from it too. This list cannot be complete, hence the
process of its own.

Newer LLVMs: Triton's is a development version, ahead of any that is released. What has another spelling
there gets the one that this LLVM reads: floats by value (`without_debug`), the triple of AMD GPUs. An
intrinsic whose calls the verifier rejects (its signature has changed since) is read as a function that LLVM
knows nothing of: renamed before, and back in what is printed, with its operands and everything else as they
are. So nothing can be lost; what is not done is to upgrade its older spellings. Linking the text into a
module of the toolchain's own LLVM (libtriton's `link_extern_libs`) prints it too, but not as it was: kernels
become internal, the target is dropped, and so is what the linker finds that nothing needs.
"""

from __future__ import annotations

import json
import re
import resource
import sys
from collections.abc import Set
from dataclasses import asdict

import llvmlite.binding as llvm

from irdiff.ir.canonical import Printed
from irdiff.ir.lexing import UnclearError
from irdiff.ir.llir.llvm_upgrades import INTRINSIC
from irdiff.ir.llir.rules import without_debug

MAX_DEPTH = 64
_MEMORY_BYTES = 2 << 30
"""The limit of the child's address space. A text of 8 MB takes a third of it."""
_UNREADABLE = Printed(text=None, why_not="unreadable")

_FLAG = '!"Debug Info Version"'
_BRACKET = re.compile(r'"[^"]*+"|[(\[{<]|[)\]}>]')
_NESTED = re.compile(r"[(\[{<][^()\[\]{}<>\n]*+[(\[{<][^()\[\]{}<>\n]*+[(\[{<][^()\[\]{}<>\n]*+[(\[{<]")
_CONSTRAINTS = re.compile(
    r'\basm (?:(?:sideeffect|alignstack|inteldialect|unwind) ){0,4}+"[^"]*+", "([^"]*+)"'
)
_USUAL_CONSTRAINTS = re.compile(r"(?:[=&~]*+(?:[a-zA-Z]|\d{1,3}|\{[\w\[\]:]+\})(?:,|$))*+")
_OPAQUE = "irdiff.opaque."
_OPAQUE_DECLARATION = re.compile(rf"^declare [^@\n]*@{re.escape(_OPAQUE)}[^\n]*", re.M)
_NEW_AMD_TRIPLE = re.compile(r'^(target triple = ")amdgpu[\w.]*-', re.M)


def reprint(text: str) -> Printed:
    """The text as this LLVM prints it, without debug information, or `unreadable`."""
    if _too_deep(text) or not _usual_constraints(text) or _OPAQUE in text:
        return _UNREADABLE
    try:
        text = without_debug(text)
        text = _NEW_AMD_TRIPLE.sub(r"\1amdgcn-", text).replace(_FLAG, '!"Debug Info Gone"')
        return Printed(text=_read_and_print(text))
    except (UnclearError, UnicodeEncodeError):
        return _UNREADABLE
    except RuntimeError as error:
        rejected = frozenset(INTRINSIC.findall(str(error)))
    try:
        printed = _read_and_print(_with_opaque(text, rejected)) if rejected else None
    except RuntimeError:
        return _UNREADABLE
    if printed is None:
        return _UNREADABLE
    return Printed(text=printed.replace(f"@{_OPAQUE}", "@"), opaque=tuple(sorted(rejected)))


def _read_and_print(text: str) -> str:
    """Raises RuntimeError where the text is no valid module."""
    with llvm.parse_assembly(text) as module:
        module.verify()
        return str(module)


def _with_opaque(text: str, intrinsics: Set[str]) -> str:
    text = INTRINSIC.sub(lambda m: f"@{_OPAQUE}{m[1]}" if m[1] in intrinsics else m[0], text)
    # `immarg` is for intrinsics alone; attributes of their declarations are LLVM's to set, and not compared
    return _OPAQUE_DECLARATION.sub(lambda m: m[0].replace(" immarg", ""), text)


def _usual_constraints(text: str) -> bool:
    return all(map(_USUAL_CONSTRAINTS.fullmatch, _CONSTRAINTS.findall(text)))


def _too_deep(text: str) -> bool:
    """True if brackets nest deeper than MAX_DEPTH. Counts only in texts that may have such a place."""
    if not _NESTED.search(text):
        return False
    depth = 0
    for match in _BRACKET.finditer(text):
        mark = match.group()
        if mark in "([{<":
            depth += 1
            if depth > MAX_DEPTH:
                return True
        elif mark in ")]}>":
            depth = max(0, depth - 1)
    return False


def serve() -> None:
    """Answers one text after another, each a line of JSON, until the input is closed.

    LLVM may abort the process, or use up its memory: it dies alone.
    """
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.stdout.write(json.dumps(asdict(Printed(text=""))) + "\n")
    sys.stdout.flush()
    for line in sys.stdin:
        sys.stdout.write(json.dumps(asdict(reprint(json.loads(line)))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    serve()
