"""Which normalizer an IR goes through, and the comparison of two texts with cheap paths first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from irdiff.errors import NormalizeError
from irdiff.normalize import amdgcn, generic, llir, mlir, mlir_lines, ptx, registers, sass, sass_registers
from irdiff.normalize.canonical import Canonical, Comparison, Reprint, Rows, check_text
from irdiff.normalize.likeness import differs_in_inferred_attributes_only, differs_in_order_only
from irdiff.normalize.llvm_upgrades import may_be_made_equal
from irdiff.normalize.opcodes import Reading, differing_part, goes_on, read_together, shows_operation

MLIR_STAGES = frozenset({"ttir", "ttgir", "glir", "source"})
_ASSEMBLY: dict[str, Callable[..., Rows]] = {"llir": llir.rows, "ptx": ptx.rows, "amdgcn": amdgcn.rows}
_STRIP: dict[str, Callable[[str], str]] = {
    "llir": llir.strip,
    "ptx": ptx.strip,
    "amdgcn": amdgcn.strip,
    **dict.fromkeys(MLIR_STAGES, mlir.strip),
}
_SAME_UP_TO_REGISTERS: dict[str, Callable[[Sequence[str], Sequence[str]], bool]] = {
    "amdgcn": registers.same_up_to_registers,
    "sass": sass_registers.same_up_to_registers,
}


def canonicalize(ir: str, text: str) -> Canonical:
    """The canonical form of one text.

    Raises NormalizeError where nothing is recognized in a text, and for binary or oversized input. An
    empty text has no lines.
    """
    check_text(ir, text)
    return _canonical(ir, _lexical_rows(ir, text))


def lines(ir: str, text: str) -> Iterator[str]:
    """The lines of `canonicalize(ir, text)`, one after another: of MLIR, without all others beside them.

    Raises NormalizeError as it does, some of it only on the way.
    """
    check_text(ir, text)
    if ir not in MLIR_STAGES or not text:
        return iter(_canonical(ir, _lexical_rows(ir, text)).lines)
    blocks = mlir.blocks(ir, text, header={})
    return (line for block in blocks for row in block if row for line in row.split("\n"))


def raw_lines(ir: str, text: str) -> tuple[int, ...]:
    """For each line of `canonicalize(ir, text)` the number of its raw line, from 1; 0 where it has none."""
    check_text(ir, text)
    return _lexical_rows(ir, text).numbers()


def equivalent(ir: str, base: str, head: str, *, reprint: Reprint | None = None) -> Comparison:
    """Whether both texts have the same canonical form, decided as early as it is certain.

    With `reprint`, LLVM IR that differs is compared once more as one LLVM reads and prints it; where it does
    not read both sides, the lexical form decides and a finding says why. Texts whose operations differ are
    read only where that may make them equal (`llvm_upgrades`).
    """
    lexical, same_operations = _compare_lexically(ir, base, head)
    if lexical.equal or reprint is None or ir != "llir":
        return lexical
    if not same_operations and not may_be_made_equal(base, head, reprint):
        return lexical
    printed = reprint(base)
    other = reprint(head) if printed.text is not None else printed
    if printed.text is None or other.text is None:
        reason = f"lexical-llir:{other.why_not}"
        return replace(lexical, findings=(reason, *lexical.findings))
    found = _compare_printed(printed.text, other.text, other.form, lexical)
    opaque = [f"opaque-intrinsic:{name}" for name in sorted({*printed.opaque, *other.opaque})]
    return replace(found, findings=(*found.findings, *opaque))


def _compare_lexically(ir: str, base: str, head: str) -> tuple[Comparison, bool]:
    """Also whether both texts may have the same operations in the same order."""
    check_text(ir, base)
    if base == head:
        return _comparison(ir, equal=True, header_equal=True), True
    check_text(ir, head)
    answer = mlir_lines.compare(base, head) if ir in MLIR_STAGES else None
    if answer:
        return _comparison(ir, equal=answer.equal, header_equal=answer.header_equal), True
    reading = _read_together(ir, base, head) if base and head else None
    if reading and not reading.same:
        return _comparison(ir, equal=False, header_equal=False), False
    if reading:
        base, head = reading.base, reading.head
        if base == head:
            return _comparison(ir, equal=True, header_equal=True), True
    stripped = reading is not None
    left, right = (_canonical(ir, _lexical_rows(ir, text, stripped=stripped)) for text in (base, head))
    if left.lines == right.lines:
        return _comparison(ir, equal=True, header_equal=left.header == right.header), True
    return _different(left, right), True


def _read_together(ir: str, base: str, head: str) -> Reading | None:
    """None for an IR that is not read so, and where a text is perhaps not of this IR."""
    strip = _STRIP.get(ir)
    if not strip:
        return None
    parts = None if ir in MLIR_STAGES else _differing_part(ir, base, head)
    if not parts:
        reading = read_together(ir, base, head, strip)
        return reading if reading.shown else None
    ours, theirs = parts
    reading = read_together(ir, base[ours], head[theirs], strip)
    if not reading.same or reading.base == reading.head:
        return reading
    before, after = strip(base[: ours.start]), strip(base[ours.stop :])
    return replace(reading, base=before + reading.base + after, head=before + reading.head + after)


def _differing_part(ir: str, base: str, head: str) -> tuple[slice, slice] | None:
    """None where one text is perhaps not of this IR, or what stands outside the part could reach into it."""
    if ir == "llir":  # no rule of `llir.strip` reaches beyond a line
        known = llir.is_recognized(base) and llir.is_recognized(head)
        return differing_part(base, head) if known else None
    if not (shows_operation(ir, base) and shows_operation(ir, head)):
        return None
    ours, theirs = differing_part(base, head)
    reaching = any(map(goes_on, (base[: ours.start], base[ours], head[theirs])))
    return None if reaching else (ours, theirs)


def _compare_printed(base: str, head: str, form: str, lexical: Comparison) -> Comparison:
    """Both as the same LLVM prints them; headers are told of the texts as they were."""
    try:
        found, _ = _compare_lexically("llir", base, head)
    except NormalizeError:
        return replace(lexical, findings=("lexical-llir:unreadable", *lexical.findings))
    findings = ("equal-as-llvm-prints",) if found.equal else found.findings
    return Comparison(equal=found.equal, header_equal=lexical.header_equal, form=form, findings=findings)


def _different(left: Canonical, right: Canonical) -> Comparison:
    findings: tuple[str, ...] = ()
    if left.form == "generic":
        findings = (*findings, f"generic-normalizer:{left.ir}")
    if left.ir == "llir":
        if differs_in_inferred_attributes_only(left.lines, right.lines):
            findings = (*findings, "inferred-attributes-only")
        elif differs_in_order_only(left.lines, right.lines):
            findings = (*findings, "reordered-only")
    judge = _SAME_UP_TO_REGISTERS.get(left.ir)
    if judge and judge(left.lines, right.lines):
        findings = (*findings, "same-up-to-registers")
    return Comparison(
        equal=False, header_equal=left.header == right.header, form=left.form, findings=findings
    )


def _lexical_rows(ir: str, text: str, *, stripped: bool = False) -> Rows:
    if not text:
        return Rows(body=[], tail=[], header={})
    if ir in MLIR_STAGES:
        return mlir.rows(ir, text, stripped=stripped)
    if ir in _STRIP:
        return _ASSEMBLY[ir](text, stripped=stripped)
    return sass.rows(text) if ir == "sass" else generic.rows(ir, text)


def _canonical(ir: str, rows: Rows) -> Canonical:
    return Canonical(ir=ir, lines=rows.lines(), header=rows.header, form=_form(ir))


def _form(ir: str) -> str:
    return "lexical" if ir in _STRIP or ir == "sass" else "generic"


def _comparison(ir: str, *, equal: bool, header_equal: bool) -> Comparison:
    form = _form(ir)
    findings = (f"generic-normalizer:{ir}",) if form == "generic" else ()
    return Comparison(equal=equal, header_equal=header_equal, form=form, findings=findings)
