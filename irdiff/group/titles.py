"""One line that says what a change is, from facts. Pure.

First what became more or fewer, the gravest first: operations by name, calls by callee, inline assembly by
its instructions; of an optimizer's output only classes that tell something. Where nothing did, what the same
operations have otherwise: attributes, layouts, values, places. Then the facts that moved. Code stands in
backticks.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from irdiff.compare import alignment, cases, edits, instructions
from irdiff.compare.edits import MLIR_STAGES, Edit, EditLine, operation
from irdiff.findings import Finding, FindingKind
from irdiff.model import Case, Fact, Verdict
from irdiff.stages import Stage

MAX_TITLE = 160
_MAX_OPERATIONS = 3
_MAX_FACTS = 3
_FACTS = (
    # fact, words, unit
    ("ttgir.convert_layout", "convert_layout", ""),
    ("spill_store_bytes", "spills", " B"),
    ("vgpr_spills", "VGPR spills", ""),
    ("sgpr_spills", "SGPR spills", ""),
    ("scratch_bytes", "scratch", " B"),
    ("shared_bytes", "shared memory", " B"),
    ("tmem_columns", "TMEM columns", ""),
    ("registers", "registers", ""),
    ("vgprs", "VGPRs", ""),
    ("agprs", "AGPRs", ""),
    ("ptx.barrier", "barriers", ""),
    ("amdgcn.barrier", "barriers", ""),
    ("amdgcn.wait", "waits", ""),
    ("ptx.fence", "fences", ""),
    ("ptx.total", "PTX instructions", ""),
    ("amdgcn.total", "instructions", ""),
)
_IN_ASSEMBLY = (
    ("barriers", "barrier", "ptx.barrier"),
    ("barriers", "barrier", "amdgcn.barrier"),
    ("fences", "fence", "ptx.fence"),
)
_STAGE_WORDS = {
    "mlir": "lowering to LLVM IR",
    Stage.LLIR: "LLVM IR",
    Stage.PTX: "PTX",
    Stage.AMDGCN: "assembly",
    Stage.SASS: "machine code",
}
_TOLD_FIRST = (
    re.compile(r"fence|membar|barrier|\bbar\b|wait|arrive|atom|cmpxchg"),
    re.compile(r"dot|mma|mfma|convert_layout|async|copy|load|store|alloc|reduce|scan|div|call |asm "),
)
_TOLD_LAST = re.compile(r"constant$|(?:ext|trunc|cast)\w*$")
_CALLEE = re.compile(r"@([\w.$-]+)")
_TOKEN = re.compile(r"[\w.@#!%-]+|->|\S")


def title(case: Case, edit: Edit | None) -> str:
    """At most MAX_TITLE characters; a part that would not fit is left out whole."""
    if case.verdict in (Verdict.BROKEN, Verdict.FIXED):
        failure = case.failures.head or case.failures.base
        verb = "breaks" if case.verdict is Verdict.BROKEN else "is fixed"
        return f"{verb} in {failure.stage}: {failure.message}"[:MAX_TITLE] if failure else verb
    facts = list(_moved(case))[:_MAX_FACTS]
    parts = _operations(edit) if edit else []
    return _joined([*(parts or [_same_counts(case, edit)]), *_kept(case, parts), *facts])


def _joined(parts: Iterable[str]) -> str:
    text = ""
    for part in parts:
        longer = f"{text}, {part}" if text else part[:MAX_TITLE]
        if len(longer) > MAX_TITLE:
            break
        text = longer
    return text


def _kept(case: Case, parts: Sequence[str]) -> Iterator[str]:
    """Where the assembly has as many barriers or fences: another pass may have made them before."""
    for words, pattern, name in _IN_ASSEMBLY:
        before, after = case.facts.base.get(name), case.facts.head.get(name)
        if before is not None and before == after and any(pattern in part for part in parts):
            yield f"as many {words} in the assembly"


# what became more or fewer


@dataclass(kw_only=True)
class _Tally:
    """Lines of one operation in an edit."""

    removed: int = 0
    added: int = 0
    depth: int = 0


def _operations(edit: Edit) -> list[str]:
    """Operations that became more or fewer; other layouts first where only index arithmetic did, too."""
    tallies: dict[str, _Tally] = {}
    for line in edit.lines:
        name = _name(edit.stage, line.text)
        if not name:
            continue
        tally = tallies.setdefault(name, _Tally())
        tally.added += line.sign == "+"
        tally.removed += line.sign == "-"
        tally.depth = max(tally.depth, line.depth)
    unequal = sorted((name for name, row in tallies.items() if row.added != row.removed), key=_order(tallies))
    telling = not unequal or _place(unequal[0]) < len(_TOLD_FIRST)
    return [*([] if telling else filter(None, [_layouts(edit)])), *_counted(unequal, tallies)]


def _counted(unequal: Sequence[str], tallies: Mapping[str, _Tally]) -> Iterator[str]:
    shown = unequal[: _MAX_OPERATIONS if len(unequal) <= _MAX_OPERATIONS else _MAX_OPERATIONS - 1]
    for name in shown:
        row = tallies[name]
        yield f"{row.added - row.removed:+d} {_quoted(name)}{_where(row.depth)}"
    if len(unequal) > len(shown):
        yield f"{len(unequal) - len(shown)} other operations"


def _order(tallies: Mapping[str, _Tally]) -> Callable[[str], tuple[int, int, int, str]]:
    def key(name: str) -> tuple[int, int, int, str]:
        net = tallies[name].added - tallies[name].removed
        return _place(name), -abs(net), net, name

    return key


def _place(name: str) -> int:
    for place, pattern in enumerate(_TOLD_FIRST):
        if pattern.search(name):
            return place
    return len(_TOLD_FIRST) + bool(_TOLD_LAST.search(name))


def _name(stage: str, text: str) -> str:
    """What a reader calls the operation of a line; empty for what every change of code touches."""
    found = operation(stage, text)
    if stage not in MLIR_STAGES:
        kind = instructions.klass(stage, found, text)
        shown = kind if _is_class(kind) or kind.startswith(("asm ", "load ", "store ")) else found
        untelling = kind in instructions.UNTELLING or text.startswith(("!", "@"))
        return "" if untelling else shown
    if found.startswith(("llvm.", "nvvm.", "rocdl.")):
        return _translated_name(found, text)
    return found if "." in found and not found.startswith("module") else ""


def _translated_name(found: str, text: str) -> str:
    """Of an operation of the dialects that become LLVM IR."""
    kind = instructions.llvm_dialect(found, text)
    if kind in instructions.UNTELLING:
        return ""
    callee = _CALLEE.search(text) if found.startswith("llvm.call") else None
    if callee:
        return f"call @{callee.group(1)}"
    return kind if kind.startswith("asm ") or found in ("llvm.load", "llvm.store") else found


def _is_class(kind: str) -> bool:
    return kind in ("float", "float conversions", "conversions", "lane exchange")


def _quoted(name: str) -> str:
    return f"{name} instructions" if _is_class(name) else f"`{name}`"


def _where(depth: int) -> str:
    if not depth:
        return ""
    return " in the loop body" if depth == 1 else f" in the loop body (depth {depth})"


# as many as before


def _same_counts(case: Case, edit: Edit | None) -> str:
    stage = case.origin.stage if case.origin else "code"
    words = _STAGE_WORDS.get(stage, stage.upper())
    launch = [f.detail for f in case.findings if f.kind is FindingKind.LAUNCH_DIFFERS]
    if cases.not_compared(case):
        return "the code was not compared: the sides end in different stages"
    if stage == "launch" and launch:
        return f"the launch passes another {launch[0].replace(',', ', ')}"
    if Finding(FindingKind.ASSEMBLER_ALLOCATED_OTHERWISE) in case.findings:
        return "same text, the assembler allocated otherwise"
    if edit is None:
        return "other machine code from the same PTX" if stage == Stage.SASS else f"other {words}"
    below = edit.stage not in MLIR_STAGES
    if below and Finding(FindingKind.REORDERED_ONLY) in case.findings:
        return f"the same instructions of the {words} in another order"
    told = _layouts(edit) or _attributes(edit) or ", ".join(filter(None, [_flags(edit), _places(edit)]))
    return told or f"other {_classes(edit)} in the {_STAGE_WORDS.get(edit.stage, words)}"


def _layouts(edit: Edit) -> str:
    """Where most lines differ only in the layout of their values: which kinds they have on each side."""
    if edit.stage not in MLIR_STAGES:
        return ""
    lines = [line for line in edit.lines if line.partner and edits.differs_in_layout(line)]
    if not lines or 2 * len(lines) < len(edit.lines):
        return ""
    kinds: dict[str, Counter[str]] = {"-": Counter(), "+": Counter()}
    for line in lines:
        assert line.partner is not None
        mine, other = edits.layout_kinds(line.text), edits.layout_kinds(line.partner)
        kinds[line.sign].update(kind for kind in (mine - other or mine) if kind != "ttg.slice")
    before, after = _most_frequent(kinds["-"]), _most_frequent(kinds["+"])
    if before == after:
        return f"`#{after}` layouts with other parameters"
    return f"layouts `#{before}` → `#{after}`" if before and after else f"`#{before or after}` layouts differ"


def _most_frequent(counts: Counter[str]) -> str:
    return min(counts, key=lambda name: (-counts[name], name), default="")


def _attributes(edit: Edit) -> str:
    """Operations that stand where they stood and say something else."""
    if edit.stage not in MLIR_STAGES:
        return ""
    found: Counter[tuple[str, str, str]] = Counter()
    for line in edit.lines:
        name = _name(edit.stage, line.text)
        if line.sign == "-" and line.partner and name:
            before, after = _difference(edits.typeless(line.text), edits.typeless(line.partner))
            if before or after:
                found[name, before, after] += 1
    rows = sorted(found, key=lambda row: (-found[row], row))
    if not rows:
        return ""
    name, before, after = rows[0]
    more = f" (beside {len(rows) - 1} others)" if len(rows) > 2 else " (beside another)" if rows[1:] else ""
    if not after or not before:
        return f"`{name}` {'with' if after else 'without'} `{after or before}`{more}"
    return f"`{name}`: `{before}` → `{after}`{more}"


def _difference(mine: str, other: str) -> tuple[str, str]:
    """The tokens in which two lines differ, with the attribute's name where it is its value that does."""
    left, right = _TOKEN.findall(mine.replace("`", "'")), _TOKEN.findall(other.replace("`", "'"))
    start, end = alignment.equal_ends(left, right)
    if start >= 2 and left[start - 1] == "=":
        start -= 2
    parts = (" ".join(tokens[start : len(tokens) - end]).strip("{}, ")[:60] for tokens in (left, right))
    return next(parts), next(parts)


def _flags(edit: Edit) -> str:
    """Flags and inferred attributes of LLVM IR, modifiers of PTX."""
    more: Counter[str] = Counter()
    for line in edit.lines:
        if line.partner is None or edit.stage not in (Stage.LLIR, Stage.PTX):
            continue
        ours, theirs = (instructions.flags(edit.stage, text) for text in (line.text, line.partner))
        sign = 1 if line.sign == "+" else -1
        for flag in ours - theirs:
            more[flag] += sign
    if not any(more.values()):
        return ""
    shown = sorted(filter(more.get, more), key=lambda flag: (-abs(more[flag]), flag))[:_MAX_OPERATIONS]
    words = ", ".join(f"{more[flag]:+d} `{flag}`" for flag in shown)
    return f"flags and inferred attributes in the {_STAGE_WORDS[edit.stage]}: {words}"


def _places(edit: Edit) -> str:
    """Operations that are somewhere else, or take other operands."""
    moved: Counter[str] = Counter()
    operands: Counter[str] = Counter()
    for line in edit.lines:
        name = _name(edit.stage, line.text)
        if name and line.sign == "+":
            (moved if line.partner is None else operands)[name] += 1
    for rows, words in ((moved, "moved"), (operands, "with other operands")):
        if rows:
            first = _most_frequent(rows)
            more = f" and {len(rows) - 1} more" if len(rows) > 1 else ""
            return f"{_quoted(first)}{more} {words}"
    return ""


def _classes(edit: Edit) -> str:
    """What the lines are, in classes of instructions."""
    found: Counter[str] = Counter()
    for line in edit.lines:
        found[_class(edit.stage, line)] += 1
    shown = sorted(found, key=lambda kind: (-found[kind], kind))[:2]
    return " and ".join(shown) if shown else "lines"


def _class(stage: str, line: EditLine) -> str:
    name = operation(stage, line.text)
    if stage not in MLIR_STAGES:
        return instructions.klass(stage, name, line.text)
    return (
        instructions.llvm_dialect(name, line.text) if name.startswith(("llvm.", "nvvm.", "rocdl.")) else name
    )


# facts


def _moved(case: Case) -> Iterator[str]:
    for name, words, unit in _FACTS:
        before, after = case.facts.base.get(name, 0), case.facts.head.get(name, 0)
        if before != after:
            yield f"{words} {_text(before)} → {_text(after)}{unit}"


def _text(value: Fact) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
