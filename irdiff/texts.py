"""Canonical text of every stage: the only judge of `equivalent`, and what every diff shows.

    canonicalize(ir, text) -> CanonicalText    the canonical form, with the raw line of each line
    compare(base, head) -> TextEquality        equal canonical forms, or how they differ
    equivalent(ir, base, head) -> TextEquality equal bytes or equal canonical forms
    lines(ir, text) -> canonical lines         the same one after another, for large texts

These are functions without effects. What reads LLVM IR with LLVM runs elsewhere (`llvm_reader`) and is
handed in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from irdiff.errors import NormalizeError
from irdiff.findings import Finding, FindingKind
from irdiff.ir.amdgcn import rules as amdgcn
from irdiff.ir.canonical import CanonicalText, Reprint, Rows, TextEquality, check_text, unrecognized
from irdiff.ir.lexing import UnclearError
from irdiff.ir.llir import rules as llir
from irdiff.ir.llir.inferred_attributes import differs_in_inferred_only
from irdiff.ir.llir.llvm_upgrades import has_same_operations, may_be_made_equal
from irdiff.ir.mlir import rules as mlir
from irdiff.ir.ptx import rules as ptx
from irdiff.ir.sass import registers as sass_registers
from irdiff.ir.sass import rules as sass
from irdiff.stages import MLIR, Stage

_ASSEMBLY: dict[str, Callable[[str], Rows]] = {
    Stage.LLIR: llir.rows,
    Stage.PTX: ptx.rows,
    Stage.AMDGCN: amdgcn.rows,
    Stage.SASS: sass.rows,
}


def canonicalize(ir: str, text: str) -> CanonicalText:
    """The canonical form of one text.

    Raises NormalizeError where nothing is recognized in a text, and for binary or oversized input. An
    empty text has no lines.
    """
    return _rows(ir, text).canonical(ir, text)


def lines(ir: str, text: str) -> Iterator[str]:
    """The lines of `canonicalize(ir, text)`, one after another; of MLIR, without holding all of them.

    Raises NormalizeError as it does, in part only while it iterates.
    """
    if ir not in MLIR or not text:
        return iter(canonicalize(ir, text).lines)
    check_text(ir, text)
    try:
        blocks = mlir.blocks(ir, text, header={})
    except UnclearError:
        return iter(text.split("\n"))
    return (line for block in blocks for row in block if row for line in row.split("\n"))


def equivalent(ir: str, base: str, head: str, *, reprint: Reprint | None = None) -> TextEquality:
    """Whether both texts have the same bytes or the same canonical form: `compare` for texts as they are."""
    if base == head:
        check_text(ir, base)
        return _equal(ir, header_equal=True)
    return compare(canonicalize(ir, base), canonicalize(ir, head), reprint)


def compare(base: CanonicalText, head: CanonicalText, reprint: Reprint | None) -> TextEquality:
    """Whether both have the same canonical form, and if not, how they differ.

    With `reprint`, LLVM IR that differs is compared once more as one LLVM reads and prints it; where it does
    not read both sides, the lexical form decides and a finding says why. Texts whose operations differ are
    read only where that may make them equal (`llvm_upgrades`).
    """
    lexical = _compare(base, head)
    if lexical.equal or reprint is None or base.ir != Stage.LLIR:
        return lexical
    if not has_same_operations(base.lines, head.lines) and not may_be_made_equal(base.raw, head.raw, reprint):
        return lexical
    printed = reprint(base.raw)
    other = reprint(head.raw) if printed.text is not None else printed
    why_not = other.why_not
    if printed.text is not None and other.text is not None:
        try:
            found = _compare(canonicalize(base.ir, printed.text), canonicalize(base.ir, other.text))
        except NormalizeError:
            why_not = "unreadable"
        else:
            kinds = (Finding(FindingKind.EQUAL_AS_LLVM_PRINTS),) if found.equal else found.findings
            names = sorted({*printed.opaque, *other.opaque})
            opaque = [Finding(FindingKind.OPAQUE_INTRINSIC, name) for name in names]
            return replace(found, header_equal=lexical.header_equal, findings=(*kinds, *opaque))
    return replace(lexical, findings=(Finding(FindingKind.LEXICAL_LLIR, why_not), *lexical.findings))


def _compare(left: CanonicalText, right: CanonicalText) -> TextEquality:
    header_equal = left.header == right.header
    if left.lines == right.lines:
        return _equal(left.ir, header_equal=header_equal)
    return TextEquality(equal=False, header_equal=header_equal, findings=_how_different(left, right))


def _how_different(left: CanonicalText, right: CanonicalText) -> tuple[Finding, ...]:
    if not _is_known(left.ir):
        return (Finding(FindingKind.GENERIC_NORMALIZER, left.ir),)
    if left.ir == Stage.LLIR and differs_in_inferred_only(left.lines, right.lines):
        return (Finding(FindingKind.INFERRED_ATTRIBUTES_ONLY),)
    if left.ir == Stage.SASS and sass_registers.same_up_to_registers(left.lines, right.lines):
        return (Finding(FindingKind.SAME_UP_TO_REGISTERS),)
    return ()


def _rows(ir: str, text: str) -> Rows:
    check_text(ir, text)
    if not text:
        return Rows(body=[], tail=[], header={})
    try:
        if ir in MLIR:
            return mlir.rows(ir, text)
        return _ASSEMBLY[ir](text) if ir in _ASSEMBLY else _of_unknown_ir(ir, text)
    except UnclearError:
        # blank lines and blanks stay, too: no rule is known to hold in such a text
        return Rows(body=[], tail=list(enumerate(text.split("\n"), 1)), header={})


def _of_unknown_ir(ir: str, text: str) -> Rows:
    """The text of a third-party backend, without blanks at the ends of lines and without blank lines.

    White space at a line's end separates nothing in any assembly or IR. Nothing else is known to be
    meaningless here, so source paths in such a text show as changes.
    """
    body = [line.rstrip() for line in text.split("\n")]
    if not any(body):
        raise unrecognized(ir, "any visible character")
    return Rows(body=body, tail=[], header={})


def _is_known(ir: str) -> bool:
    return ir in MLIR or ir in _ASSEMBLY


def _equal(ir: str, *, header_equal: bool) -> TextEquality:
    findings = () if _is_known(ir) else (Finding(FindingKind.GENERIC_NORMALIZER, ir),)
    return TextEquality(equal=True, header_equal=header_equal, findings=findings)
