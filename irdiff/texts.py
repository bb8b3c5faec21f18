"""Canonical text of every stage: the only judge of `equivalent`, and what every diff shows.

    canonicalize(stage, text) -> CanonicalText    the canonical form, with the raw line of each line
    compare(base, head) -> TextEquality        equal canonical forms, or how they differ
    equivalent(stage, base, head) -> TextEquality equal bytes or equal canonical forms
    lines(stage, text) -> canonical lines         the same one after another, for large texts

These are functions without effects. What reads LLVM IR with LLVM runs elsewhere (`llvm_reader`) and is
handed in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from irdiff import ir
from irdiff.backends import BACKENDS
from irdiff.errors import NormalizeError
from irdiff.findings import Finding, FindingKind
from irdiff.ir import Ir
from irdiff.ir.canonical import CanonicalText, Reprint, Rows, TextEquality, check_text
from irdiff.ir.lexing import UnclearError
from irdiff.ir.llir.llvm_upgrades import has_same_operations, may_be_made_equal
from irdiff.ir.mlir import rules as mlir_rules
from irdiff.stages import MLIR, Stage

_IRS: Mapping[str, Ir] = {
    **ir.SHARED,
    **{stage: each for backend in BACKENDS.values() for stage, each in backend.IRS.items()},
}


def ir_of(stage: str) -> Ir:
    """Returns `ir.UNKNOWN` for a stage that irdiff does not know."""
    return _IRS.get(stage, ir.UNKNOWN)


def is_known(stage: str) -> bool:
    """True if irdiff reads a stage by its own IR, and not as any text."""
    return stage in _IRS


def title(stage: str) -> str:
    """How sentences call the text of a stage: `LLVM IR`, `TTGIR`."""
    return ir_of(stage).TITLE or stage.upper()


def canonicalize(stage: str, text: str) -> CanonicalText:
    """The canonical form of one text.

    Raises NormalizeError where nothing is recognized in a text, and for binary or oversized input. An
    empty text has no lines.
    """
    text = _with_unix_lines(text)
    return _rows(stage, text).canonical(stage, text)


def lines(stage: str, text: str) -> Iterator[str]:
    """The lines of `canonicalize(stage, text)`, one after another; of MLIR, without holding all of them.

    Raises NormalizeError as it does, in part only while it iterates.
    """
    if stage not in MLIR or not text:
        return iter(canonicalize(stage, text).lines)
    text = _with_unix_lines(text)
    check_text(stage, text)
    try:
        blocks = mlir_rules.blocks(stage, text, header={})
    except UnclearError:
        return iter(text.split("\n"))
    return (line for block in blocks for text_block in block if text_block for line in text_block.split("\n"))


def _with_unix_lines(text: str) -> str:
    """Without a mark of the byte order, and with the ends of lines that compilers write."""
    text = text.removeprefix("\ufeff")
    return text.replace("\r\n", "\n") if "\r\n" in text else text


def instruction_facts(stage: str, text: str) -> dict[str, int]:
    """Instructions by class, `total` for all of them; empty for a stage that has no classes."""
    return ir_of(stage).facts(stage, text)


def equivalent(stage: str, base: str, head: str, *, reprint: Reprint | None = None) -> TextEquality:
    """Compares two texts as they are: by their bytes, then by their canonical forms, as `compare` does."""
    if base == head:
        check_text(stage, base)
        return _equal(stage, header_equal=True)
    return compare(canonicalize(stage, base), canonicalize(stage, head), reprint)


def compare(base: CanonicalText, head: CanonicalText, reprint: Reprint | None) -> TextEquality:
    """Compares two canonical forms, and says how they differ.

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
            equality = _compare(canonicalize(base.ir, printed.text), canonicalize(base.ir, other.text))
        except NormalizeError:
            why_not = "unreadable"
        else:
            kinds = (Finding(FindingKind.EQUAL_AS_LLVM_PRINTS),) if equality.equal else equality.findings
            names = sorted({*printed.opaque, *other.opaque})
            opaque = [Finding(FindingKind.OPAQUE_INTRINSIC, name) for name in names]
            return replace(equality, header_equal=lexical.header_equal, findings=(*kinds, *opaque))
    return replace(lexical, findings=(Finding(FindingKind.LEXICAL_LLIR, why_not), *lexical.findings))


def _compare(left: CanonicalText, right: CanonicalText) -> TextEquality:
    header_equal = left.header == right.header
    if left.lines == right.lines:
        return _equal(left.ir, header_equal=header_equal)
    findings = (*_unknown(left.ir), *ir_of(left.ir).how_different(left.lines, right.lines))
    return TextEquality(equal=False, header_equal=header_equal, findings=findings)


def _equal(stage: str, *, header_equal: bool) -> TextEquality:
    return TextEquality(equal=True, header_equal=header_equal, findings=_unknown(stage))


def _unknown(stage: str) -> tuple[Finding, ...]:
    return () if is_known(stage) else (Finding(FindingKind.GENERIC_NORMALIZER, stage),)


def _rows(stage: str, text: str) -> Rows:
    check_text(stage, text)
    if not text:
        return Rows(body=[], tail=[], header={})
    try:
        return ir_of(stage).rows(stage, text)
    except UnclearError:
        # blank lines and blanks stay, too: no rule is known to hold in such a text
        return Rows(body=[], tail=list(enumerate(text.split("\n"), 1)), header={})
