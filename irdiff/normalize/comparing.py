"""Which normalizer an IR goes through, and the comparison of two texts with cheap paths first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from irdiff.normalize import amdgcn, generic, llir, llvm_reader, mlir, ptx, sass
from irdiff.normalize.canonical import Canonical, Comparison, Rows, check_text
from irdiff.normalize.likeness import differs_in_inferred_attributes_only, differs_in_order_only
from irdiff.normalize.opcodes import header_lines, operations
from irdiff.normalize.registers import same_up_to_registers

MLIR_STAGES = frozenset({"ttir", "ttgir", "glir", "source"})
_LEXICAL: dict[str, Callable[[str], Rows]] = {
    "llir": llir.rows,
    "ptx": ptx.rows,
    "amdgcn": amdgcn.rows,
    "sass": sass.rows,
}
_STRIP: dict[str, Callable[[str], str]] = {
    "llir": llir.strip,
    "ptx": ptx.strip,
    "amdgcn": amdgcn.strip,
    **dict.fromkeys(MLIR_STAGES, mlir.strip),
}


def canonicalize(ir: str, text: str, *, llvm: bool = False) -> Canonical:
    """The canonical form of one text; with `llvm`, LLVM IR is read and printed by llvmlite where it can be.

    Raises NormalizeError where nothing is recognized in a text, and for binary or oversized input. An
    empty text has no lines.
    """
    check_text(ir, text)
    printed = llvm_reader.reprint(text) if llvm and ir == "llir" else None
    if printed is None:
        return _canonical(ir, _lexical_rows(ir, text), _form(ir))
    rows = llir.rows(printed)
    rows.header.update(llir.targets(text))
    return _canonical(ir, rows, llvm_reader.FORM)


def raw_lines(ir: str, text: str) -> tuple[int, ...]:
    """For each line of `canonicalize(ir, text)` the number of its raw line, from 1; 0 where it has none."""
    check_text(ir, text)
    return _lexical_rows(ir, text).numbers()


def equivalent(ir: str, base: str, head: str, *, llvm: bool = False) -> Comparison:
    """Whether both texts have the same canonical form, decided as early as it is certain.

    With `llvm`, LLVM IR that differs is compared again as llvmlite prints it, where it can read both.
    """
    if base == head:
        check_text(ir, base)
        return _comparison(ir, equal=True, header_equal=True)
    check_text(ir, base)
    check_text(ir, head)
    early = _decide_early(ir, base, head)
    if early:
        return early
    left, right = canonicalize(ir, base), canonicalize(ir, head)
    if left.lines == right.lines:
        return _comparison(ir, equal=True, header_equal=left.header == right.header)
    if llvm and ir == "llir":
        return _compare_llvm(base, head, left, right)
    return _different(left, right, ())


def _decide_early(ir: str, base: str, head: str) -> Comparison | None:
    """Equal but for locations and comments, or not even the same operations."""
    strip = _STRIP.get(ir)
    if not (strip and base and head):
        return None
    left, right = strip(base), strip(head)
    counts, others = Counter(operations(ir, left)), Counter(operations(ir, right))
    if not (counts and others):
        return None  # perhaps not of this IR: the full form says so
    if left == right:
        return _comparison(ir, equal=True, header_equal=True)
    if counts == others:
        return None
    return _comparison(ir, equal=False, header_equal=header_lines(left) == header_lines(right))


def _compare_llvm(base: str, head: str, left: Canonical, right: Canonical) -> Comparison:
    printed = llvm_reader.reprint(base)
    other = llvm_reader.reprint(head) if printed is not None else None
    if printed is None or other is None:
        return _different(left, right, ("lexical-llir",))
    read_left = _canonical("llir", llir.rows(printed), llvm_reader.FORM)
    read_right = _canonical("llir", llir.rows(other), llvm_reader.FORM)
    if read_left.lines == read_right.lines:
        return Comparison(
            equal=True, header_equal=left.header == right.header, form=llvm_reader.FORM, findings=()
        )
    return _different(read_left, read_right, ())


def _different(left: Canonical, right: Canonical, findings: tuple[str, ...]) -> Comparison:
    if left.form == "generic":
        findings = (*findings, f"generic-normalizer:{left.ir}")
    if left.ir == "llir":
        if differs_in_inferred_attributes_only(left.lines, right.lines):
            findings = (*findings, "inferred-attributes-only")
        elif differs_in_order_only(left.lines, right.lines):
            findings = (*findings, "reordered-only")
    if same_up_to_registers(left.ir, left.lines, right.lines):
        findings = (*findings, "same-up-to-registers")
    return Comparison(
        equal=False, header_equal=left.header == right.header, form=left.form, findings=findings
    )


def _lexical_rows(ir: str, text: str) -> Rows:
    if not text:
        return Rows(body=[], tail=[], header={})
    if ir in MLIR_STAGES:
        return mlir.rows(ir, text)
    normalizer = _LEXICAL.get(ir)
    return normalizer(text) if normalizer else generic.rows(ir, text)


def _canonical(ir: str, rows: Rows, form: str) -> Canonical:
    return Canonical(ir=ir, lines=rows.lines(), header=rows.header, form=form)


def _form(ir: str) -> str:
    return "lexical" if ir in _LEXICAL or ir in MLIR_STAGES else "generic"


def _comparison(ir: str, *, equal: bool, header_equal: bool) -> Comparison:
    form = _form(ir)
    findings = (f"generic-normalizer:{ir}",) if form == "generic" else ()
    return Comparison(equal=equal, header_equal=header_equal, form=form, findings=findings)
