"""Synthetic runs of any size, the same for the same arguments."""

from __future__ import annotations

from dataclasses import replace

from irdiff.compare.radius import summarize
from irdiff.model import (
    Artifact,
    Case,
    ChangeGroup,
    Component,
    Failure,
    FailureKind,
    Origin,
    Run,
    Sides,
    StageStatus,
    Target,
    Verdict,
)
from tests.unit.conftest import Build

STAGES = ("ttir", "ttgir", "llir", "ptx", "sass")
TARGETS = tuple(
    Target(name=name, backend=backend, arch=arch, warp_size=32, title=name, facts={}, sources={})
    for name, backend, arch in (
        ("sm_90", "cuda", 90),
        ("sm_100", "cuda", 100),
        ("gfx942", "hip", "gfx942"),
        ("gfx950", "hip", "gfx950"),
    )
)


def make_case(number: int, verdict: Verdict, origin_stage: str = "ttgir", group: str | None = None) -> Case:
    target = TARGETS[number % len(TARGETS)].name
    family = ("matmul", "attention", "normalization", "elementwise", "moe")[number // 4 % 5]
    workload = f"{family}/workload_{number // 40:02d}"
    changed = verdict in (Verdict.CHANGED, Verdict.ABSORBED)
    failure = Failure(
        kind=FailureKind.ERROR,
        stage="ttgir",
        message="PassManager::run failed",
        signal=None,
        stderr="Traceback (most recent call last):\nRuntimeError: PassManager::run failed",
    )
    broken = verdict is Verdict.BROKEN
    made: Case = Build.case(f"{workload}:fp16-{256 * (1 + number // 4)}@{target}", verdict)
    return replace(
        made,
        tier="core",
        origin=_origin(origin_stage) if changed else None,
        stages=_stages(origin_stage, verdict),
        facts=Sides(base=_facts(number), head=_facts(number, moved=verdict is Verdict.CHANGED)),
        error=failure.message if broken else None,
        failures=Sides(base=None, head=failure if broken else None),
        artifacts=Sides(base={}, head={}),
        launches=Sides(base=None, head=None),
        compile_s=Sides(base={"ttir": 0.1}, head={"ttir": 0.1}),
        group=group,
        edit=None,
    )


def _origin(stage: str) -> Origin:
    component = {"ttir": Component.TTIR_PASSES, "ttgir": Component.TTGIR_PASSES}.get(
        stage, Component.LLVM_CODEGEN
    )
    pass_name = "tritongpu-pipeline" if stage == "ttgir" else None
    return Origin(stage=stage, pass_name=pass_name, masked=(), charged=(component,), note="")


def _stages(origin: str, verdict: Verdict) -> dict[str, StageStatus]:
    if verdict is Verdict.UNCHANGED:
        return dict.fromkeys(STAGES, StageStatus.EQUIVALENT)
    if verdict not in (Verdict.CHANGED, Verdict.ABSORBED):
        return dict.fromkeys(STAGES, StageStatus.ABSENT)
    first = STAGES.index(origin)
    last = len(STAGES) if verdict is Verdict.CHANGED else first + 1
    return {
        stage: StageStatus.CHANGED if first <= index < last else StageStatus.IDENTICAL
        for index, stage in enumerate(STAGES)
    }


def _facts(number: int, *, moved: bool = False) -> dict[str, int | float | str]:
    registers = 32 + number * 7 % 190
    grown = registers + 1 + number % 40 if moved else registers
    spills = 64 * (number % 3) if moved and number % 5 == 0 else 0
    return {
        "registers": grown,
        "spill_store_bytes": spills,
        "shared_bytes": 1024 * (1 + number % 96),
        "instructions_mma": 64 if number % 2 else 0,
        "instructions_load_global": 8 + number % 8 + (2 if moved else 0),
    }


def make_group(number: int, members: tuple[str, ...], severity: str, stage: str) -> ChangeGroup:
    return Build.group(
        f"g{number:03d}",
        *members,
        title=f"+{1 + number % 4} ttng.fence_async_shared in the loop body ({number})",
        severity=severity,
        score=float(100 - number % 100),
        origin_stage=stage,
        pass_name="tritongpu-pipeline" if stage == "ttgir" else None,
        likeness=1.0 if number % 2 else 0.9,
        reasons=("a fence was added: results may depend on it",),
        edit=(
            "+ ttng.fence_async_shared {bCluster = false}",
            "- ttg.local_store %0, %1",
            "+ ttg.local_store %1, %0",
        ),
    )


def make_run(cases: tuple[Case, ...], groups: tuple[ChangeGroup, ...] = ()) -> Run:
    programs = {"ptxas": "d" * 64, "ptxas-blackwell": "e" * 64}
    return replace(
        Build.run(*sorted(cases, key=lambda case: case.id)),
        created="2026-11-21T07:00:00+00:00",
        base=Build.revision("3.8.0", digest="a" * 64, corpus="c" * 64, ptxas=programs),
        head=Build.revision("3.9.0", digest="b" * 64, corpus="c" * 64, ptxas=programs),
        targets=TARGETS,
        environment={"TRITON_DEFAULT_FP_FUSION": "1", "address-randomization": "off"},
        summary=summarize(cases, TARGETS),
        groups=groups,
    )


def large_run(cases: int, groups: int, broken: int = 3) -> Run:
    """`cases` cases of which half changed, in `groups` groups."""
    severities = ("wrong-result risk", "spills or occupancy", "instruction mix", "code motion only")
    stages = ("ttir", "ttgir", "llir", "sass")
    rows: list[Case] = []
    members: dict[int, list[str]] = {}
    for number in range(cases):
        if number < broken:
            rows.append(make_case(number, Verdict.BROKEN))
        elif number % 2:
            group = number // 2 % groups if groups else 0
            name = f"g{group:03d}" if groups else None
            rows.append(make_case(number, Verdict.CHANGED, stages[group % 4], name))
            members.setdefault(group, []).append(rows[-1].id)
        else:
            rows.append(
                make_case(number, Verdict.ABSORBED if number % 10 == 0 else Verdict.UNCHANGED, "ttir")
            )
    made = (
        tuple(
            make_group(group, tuple(sorted(found)), severities[group % 4], stages[group % 4])
            for group, found in sorted(members.items())
        )
        if groups
        else ()
    )
    return make_run(tuple(rows), made)


def with_artifacts(case: Case, base: dict[str, Artifact], head: dict[str, Artifact]) -> Case:
    return replace(case, artifacts=Sides(base=base, head=head))
