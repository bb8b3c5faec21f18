"""One line that says what a change is, from facts. Pure."""

from __future__ import annotations

from collections import Counter

from irdiff.compare import instructions
from irdiff.compare.edits import MLIR_STAGES, SAME_FORM, Edit, operation
from irdiff.model import Case, Fact, Verdict

MAX_TITLE = 160
_FACTS = (
    # fact, words, whether bytes
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


def title(case: Case, edit: Edit | None, counts: Counter[str]) -> str:
    if case.verdict in (Verdict.BROKEN, Verdict.FIXED):
        failure = case.failures.head or case.failures.base
        verb = "breaks" if case.verdict is Verdict.BROKEN else "is fixed"
        return f"{verb} in {failure.stage}: {failure.message}"[:MAX_TITLE] if failure else verb
    parts = [_operations(edit) if edit else "", *_moved(case)]
    if not parts[0]:
        parts[0] = _without_operations(case, counts)
    return ", ".join(part for part in parts if part)[:MAX_TITLE]


def _operations(edit: Edit) -> str:
    """Operations that became more or fewer, where that is the whole edit or nearly so."""
    if edit.stage not in MLIR_STAGES:
        return ""
    net: Counter[str] = Counter()
    depth: dict[str, int] = {}
    for line in edit.lines:
        name = operation(edit.stage, line.text)
        below = name.startswith(("llvm.", "nvvm.", "rocdl."))
        if below and instructions.llvm_dialect(name, line.text) in instructions.UNTELLING:
            continue
        net[name] += 1 if line.sign == "+" else -1
        depth[name] = max(depth.get(name, 0), line.depth)
    moved = sorted((name for name in net if net[name]), key=lambda name: (-abs(net[name]), name))
    shown = [
        f"{net[name]:+d} `{name}`{_where(depth[name])}"
        for name in moved[:2]
        if "." in name and abs(net[name]) < 100
    ]
    if len(moved) > 2 and shown:
        shown.append(f"{len(moved) - 2} more operations")
    return ", ".join(shown)


def _where(depth: int) -> str:
    if not depth:
        return ""
    return " in the loop body" if depth == 1 else f" in the loop body (depth {depth})"


def _moved(case: Case) -> list[str]:
    shown = []
    for name, words, unit in _FACTS:
        before, after = case.facts.base.get(name, 0), case.facts.head.get(name, 0)
        if before != after:
            shown.append(f"{words} {_text(before)} → {_text(after)}{unit}")
    return shown[:3]


def _text(value: Fact) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _without_operations(case: Case, counts: Counter[str]) -> str:
    for finding, words in (
        ("inferred-attributes-only", "other inferred attributes in LLVM IR"),
        ("reordered-only", "the same instructions in another order"),
        ("same-up-to-registers", "the same instructions in other registers"),
    ):
        if finding in case.findings:
            return words
    launch = [f.partition(":")[2] for f in case.findings if f.startswith("launch-differs:")]
    if case.origin and case.origin.stage == "launch" and launch:
        return f"the launch passes another {launch[0].replace(',', ', ')}"
    if case.origin and case.origin.stage == "sass":
        return "other machine code from the same PTX"
    stage = case.origin.stage if case.origin else "code"
    layouts = _layouts(counts)
    if layouts:
        return layouts
    lines = [line for line, _ in sorted(counts.items(), key=lambda row: (-row[1], row[0]))][:3]
    return f"{stage}: " + ", ".join(line[:60] for line in lines) if lines else f"{stage} differs"


def _layouts(counts: Counter[str]) -> str:
    """Where most lines differ only in the layout of their values: which kinds they have on each side."""
    rows = {line: count for line, count in counts.items() if line[1:].startswith("layout ")}
    if 2 * sum(rows.values()) < sum(counts.values()):
        return ""
    kinds: dict[str, Counter[str]] = {"-": Counter(), "+": Counter()}
    for line, count in rows.items():
        for kind in line[len("+layout ") :].removesuffix(SAME_FORM).split():
            if kind.startswith("#"):
                kinds[line[0]][kind] += count
    before, after = (kinds[sign].most_common(1)[0][0] if kinds[sign] else "" for sign in "-+")
    if not after or before == after:
        return f"other {before or after} layouts" if before or after else ""
    return f"layouts {before} → {after}" if before else f"new {after} layouts"
