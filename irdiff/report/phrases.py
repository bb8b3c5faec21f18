"""Words and counts that all reports share, as plain text: the caller escapes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from irdiff.backends import stages
from irdiff.backends.statistic import value_of
from irdiff.compare import statistics
from irdiff.group.report_classes import ReportClass
from irdiff.model import Case, ChangeGroup, Component, Fact, Radius, Revision, Run, Verdict
from irdiff.resolve import settings
from irdiff.stages import MLIR
from irdiff.words import counted

PARTS: Mapping[Component, str] = {
    **stages.NAMES,
    Component.PROGRAM: "the program",
    Component.RUNTIME: "the runtime",
    Component.SPECIALIZATION: "another specialization",
    Component.FRONTEND: "the frontend",
    Component.TTIR_PASSES: "the TTIR passes",
    Component.TTGIR_PASSES: "the TTGIR passes",
    Component.LLVM_LOWERING: "the lowering to LLVM IR",
    Component.LLVM_CODEGEN: "LLVM",
    Component.ASSEMBLER: "the assembler",
}
"""Names the parts of a toolchain in reports; those of `run.json` are shorter."""
_STATISTIC_OF = {
    statistic.facts[0]: statistic for statistic in statistics.STATISTICS if len(statistic.facts) == 1
}
_PLACES = {fact: place for place, fact in enumerate(statistics.FACTS)}


def in_target_order(run: Run) -> list[tuple[str, Radius]]:
    return [(t.name, run.summary.radius[t.name]) for t in run.targets if t.name in run.summary.radius]


def of_kernels(run: Run) -> bool:
    """True if one compiler compiles two revisions of kernels, so that only the kernels differ."""
    return bool(run.base.revision and run.head.revision) and run.base.digest == run.head.digest


def is_loud(group: ChangeGroup) -> bool:
    """True of a group that may give a wrong result, or none."""
    return group.severity in (ReportClass.BROKEN, ReportClass.HAZARD)


def side(revision: Revision) -> str:
    """`triton==3.9.0`, or with the kernels that it compiles, `main 1a2b3c4, triton 3.9.0`."""
    if revision.revision:
        return f"{revision.revision}, {_compiler(revision)}"
    version = "" if revision.version in revision.spec else f" ({revision.version})"
    return f"{revision.spec}{version}"


def sides(run: Run) -> str:
    """`main 1a2b3c4 → HEAD 5d6e7f8, triton 3.9.0` if one compiler compiles two revisions."""
    base, head = run.base, run.head
    if of_kernels(run):
        return f"{base.revision} → {head.revision}, {_compiler(head)}"
    return f"{_with_digest(base)} → {_with_digest(head)}"


def _with_digest(revision: Revision) -> str:
    """`main (3.9.0, digest 1a2b3c4d5e6f)`."""
    words, digest = side(revision), f"digest {revision.digest[:12]}"
    return f"{words[:-1]}, {digest})" if words.endswith(")") else f"{words} ({digest})"


def renamed(run: Run) -> list[tuple[str, str]]:
    """Returns (name at base, name at head) of renamed or moved launches and kernels, each once for all
    targets. Launches that only have another number are left out.
    """
    names = set()
    for case in run.cases:
        launches = [run.launches.get(key or "") for key in case.launches]
        base, head = (launch.kernel if launch else "" for launch in launches)
        places = {(launch.workload, launch.label, launch.kernel) for launch in launches if launch}
        if case.renamed_from and all(launches) and len(places) == 1:
            continue
        if case.renamed_from:
            names.add((case.renamed_from.rpartition("@")[0], case.id.rpartition("@")[0]))
        elif base and head and base != head:
            names.add((base, head))
    return sorted(names)


def _compiler(revision: Revision) -> str:
    plain, chosen = settings.split(revision.spec)
    kind, _, place = plain.partition(":")
    return (
        f"triton {revision.version}" + (f" of {place}" if kind == "python" else "") + settings.suffix(chosen)
    )


def place(stage: str, pass_name: str | None) -> str:
    """`ttgir`, or `ttgir: the-pass` if the pass is known."""
    return f"{stage}: {pass_name}" if pass_name else stage


def components(charged: Iterable[Component]) -> str:
    """Lists contributing parts of the toolchain: `LLVM, ptxas`."""
    parts = list(charged)
    names = [PARTS[part] for part in parts if part is not Component.NOT_SEPARABLE]
    if len(names) == len(parts):
        return ", ".join(names)
    return (
        f"{', '.join(names)}, and others that irdiff could not name"
        if names
        else "irdiff could not name them"
    )


def members_by_target(group: ChangeGroup, cases: Mapping[str, Case]) -> str:
    """`gfx942, sm_90 ×12`."""
    counts = Counter(cases[member].target for member in group.members if member in cases)
    return ", ".join(name + (f" ×{count}" if count > 1 else "") for name, count in sorted(counts.items()))


def number(value: Fact) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else value


def fact_name(fact: str) -> str:
    """`instructions executed`, `PTX instructions` for `ptx.total`, `TTGIR barrier` for `ttgir.barrier`."""
    if fact in _STATISTIC_OF:
        return _STATISTIC_OF[fact].name
    ir, is_counted, kind = fact.rpartition(".")
    if kind == "total":
        kind = "operations" if ir in MLIR else "instructions"
    return f"{ir.upper()} {kind}".replace("_", " ") if is_counted else fact.replace("_", " ")


def unit(fact: str) -> str:
    """Begins with a space, or is empty."""
    name = _STATISTIC_OF[fact].unit if fact in _STATISTIC_OF else ""
    return f" {name}" if name else ""


def moved(case: Case, limit: int = 6) -> str:
    if case.verdict is Verdict.ADDED:
        facts = list(facts_in_order(case.facts.head).items())[:limit]
        return ", ".join(f"{fact_name(fact)} {number(value)}{unit(fact)}" for fact, value in facts)
    changes = list(moved_facts(case.facts.base, case.facts.head).items())
    if case.verdict is not Verdict.CHANGED:
        return ""
    if not changes:
        return "code only: no resource or instruction count moved"
    shown = ", ".join(
        f"{fact_name(fact)} {number(base)} → {number(head)}{unit(fact)}"
        for fact, (base, head) in changes[:limit]
    )
    more = len(changes) - limit
    return shown + (f" and {counted(more, 'more figure')}" if more > 0 else "")


# which facts come first


def moved_facts(base: Mapping[str, Fact], head: Mapping[str, Fact]) -> dict[str, tuple[Fact, Fact]]:
    """Maps names to (base, head): facts of statistics in the table's order, then the largest moves first.
    Leaves out facts that one side lacks.
    """
    moved = {}
    for name in {**base, **head}:
        before, after = value_of(name, base), value_of(name, head)
        if before is not None and after is not None and before != after:
            moved[name] = before, after

    def place(name: str) -> tuple[int, float, str]:
        before, after = moved[name]
        share = 0.0
        if isinstance(before, (int, float)) and isinstance(after, (int, float)):
            share = abs(after - before) / max(abs(before), abs(after), 1)
        return _PLACES.get(name, len(_PLACES)), -share, name

    return {name: moved[name] for name in sorted(moved, key=place)}


def facts_in_order(facts: Mapping[str, Fact]) -> dict[str, Fact]:
    """Leaves out zeros. Puts facts of statistics first, in the table's order."""
    names = sorted(facts, key=lambda name: (_PLACES.get(name, len(_PLACES)), name))
    return {name: facts[name] for name in names if facts[name] != 0}


def unknown_facts(base: Mapping[str, Fact], head: Mapping[str, Fact]) -> dict[str, str]:
    """Names the side that lacks each fact of a statistic."""
    names = [name for name in _PLACES if (value_of(name, base) is None) != (value_of(name, head) is None)]
    return {name: "base" if value_of(name, base) is None else "head" for name in names}
