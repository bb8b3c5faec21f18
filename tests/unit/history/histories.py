"""Small and large histories, the same for the same arguments."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from irdiff.history import add, database, lines
from irdiff.history.database import Database
from irdiff.history.inventory import CompiledCase, Inventory
from irdiff.history.lines import SeriesLines
from irdiff.history.versions import RELEASES, Version, sort_key
from irdiff.model import Run, Verdict
from tests.unit.conftest import Build


def version(label: str) -> Version:
    return Version(
        name=f"triton=={label}",
        series=RELEASES,
        sort_key=sort_key(label),
        label=label,
        toolchain=label * 8,
        corpus="c" * 64,
    )


def run(base: str, head: str, *cases, **changes) -> Run:
    made = Build.run(*cases, **changes)
    return replace(
        made,
        base=replace(made.base, spec=f"triton=={base}", version=base, digest=base * 8),
        head=replace(made.head, spec=f"triton=={head}", version=head, digest=head * 8),
    )


def kept(path: Path, *runs: Run) -> SeriesLines:
    """The lines of releases once the runs are added to a history."""
    with database.writing(path) as history:
        for one in runs:
            add.add_run(history, one, None)
    with database.reading(path) as history:
        return lines.read(history, RELEASES)


def made(case_id: str, **facts: float) -> CompiledCase:
    launch = Build.launch(case_id)
    return CompiledCase(
        case_id=case_id,
        workload=launch.workload,
        kernel=launch.kernel,
        target=launch.target,
        tier=launch.tier,
        failure=None,
        facts=facts,
        wall_s={"ttir": 0.5, "ptx": 0.25},
        cpu_s={"ttir": 0.25, "ptx": 0.125},
    )


def inventory(*cases: CompiledCase) -> Inventory:
    return Inventory(cases=cases, wall_s=10.0, cpu_s=8.0, compiled=len(cases))


def measured(path: Path, label: str, *cases: CompiledCase) -> None:
    """Adds the inventory of a release."""
    with database.writing(path) as history:
        add.add_inventory(history, version(label), "all", inventory(*cases))


TARGETS = ("sm_90", "sm_100", "gfx942", "gfx950")
FACTS = tuple(
    ["registers", "spill_store_bytes", "shared_bytes", "warps_per_multiprocessor", "code_bytes", "ptx.total"]
    + [f"ptx.class_{number}" for number in range(34)]
)


def fill(history: Database, labels: Sequence[str], cases: int) -> list[str]:
    """Rows as backfills make them, put in directly: `cases` cases of which a third changes in each version."""
    ids = [
        f"family{number % 7}/workload{number // 20:02d}:fp16-{128 * (1 + number)}@{TARGETS[number % 4]}"
        for number in range(cases)
    ]
    rows = [(name, Build.launch(name).workload, "a_kernel", name.rpartition("@")[2], "gate") for name in ids]
    history.put("cases", rows)
    add.put_versions(history, [version(label) for label in labels])
    for place, label in enumerate(labels):
        name = version(label).name
        history.put("compilations", [(name, case, "compiled", None) for case in ids])
        history.put("stage_costs", [(name, case, "ttir", 0.5, 0.25 + place / 100) for case in ids])
        values = [
            float(100 + index % 50 + (place * (1 + index % 3) if (index + place) % 3 == 0 else 0))
            for index in range(cases)
        ]
        facts = [
            (name, case, fact, value, "measured")
            for case, value in zip(ids, values, strict=True)
            for fact in FACTS
        ]
        history.put("facts", facts)
    for place, (base, head) in enumerate(itertools.pairwise(labels)):
        _pair(history, place, base, head, ids)
    return ids


def _pair(history: Database, place: int, base: str, head: str, ids: Sequence[str]) -> None:
    run_id = f"run{place:04d}"
    sides = (version(base).name, version(head).name)
    history.put(
        "runs", [(run_id, f"2026-11-2{place % 8}", *sides, "all", True, len(ids), len(ids) // 3, 12.5, "")]
    )
    verdicts, groups = [], {}
    for index, case in enumerate(ids):
        changed = (index + place) % 3 != 2
        group = f"group{place}-{index % 25}" if changed else None
        verdict = Verdict.CHANGED if changed else Verdict.UNCHANGED
        verdicts.append(
            (run_id, case, str(verdict), "ttgir" if changed else None, "tritongpu-pipeline", group, "")
        )
        if group:
            title = f"+{index % 25} `ttng.fence_async_shared` in the loop body"
            shown = (title, "instruction mix", 5.0, "ttgir", "tritongpu-pipeline", "ttgir passes", case, 10)
            groups[group] = (run_id, group, *shown)
    history.put("verdicts", verdicts)
    history.put("groups", list(groups.values()))


def session(history: Database, case: str, ratios: dict[str, tuple[float, float]], name: str = "one") -> None:
    """Timings of one case: ratio and half of its interval's width, by version."""
    names = ("GPU-1", "NVIDIA H200", "sm_90", "580", "triton==3.9.0")
    card = (*names, 1980.0, 3201.0, 41.0, 440.0, "", True, 18)
    history.put("sessions", [(name, "2026-11-22", *card)])
    rows = [
        (name, f"triton=={label}", case, 50.0 * ratio, ratio, ratio - half, ratio + half, 0.002, "equal")
        for label, (ratio, half) in ratios.items()
    ]
    history.put("timings", rows)


def filled(path: Path, labels: Sequence[str], cases: int) -> list[str]:
    with database.writing(path) as history:
        return fill(history, labels, cases)
