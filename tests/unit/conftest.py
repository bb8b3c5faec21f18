"""Small valid runs for unit tests: `build.run(build.case(...), ...)`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from irdiff.compare import radius
from irdiff.findings import Finding
from irdiff.model import (
    DEFAULT_OPTIONS,
    GROUPED_VERDICTS,
    SCHEMA,
    Artifact,
    Case,
    ChangeGroup,
    Component,
    Failure,
    FailureKind,
    Launch,
    Origin,
    Revision,
    Run,
    Sides,
    StageStatus,
    Target,
    Toolchain,
    Verdict,
)
from irdiff.resolve.corpus import Corpus
from irdiff.resolve.sides import Side
from irdiff.store import sha256
from tests.unit.findings import findings

_BACKENDS = {"sm": ("cuda", 90, 32), "gf": ("hip", "gfx942", 64)}
_CODE = {"cuda": ("ptx", "sass"), "hip": ("llir", "amdgcn")}


class Build:
    """Makers of consistent parts of a run; every argument has a plain default."""

    @staticmethod
    def target(name: str = "sm_90") -> Target:
        backend, arch, warp = _BACKENDS.get(name[:2], _BACKENDS["sm"])
        return Target(
            name=name, backend=backend, arch=arch, warp_size=warp, title=name.upper(), facts={}, sources={}
        )

    @staticmethod
    def launch(case_id: str, side: str = "head", **changes: Any) -> Launch:
        launch_id, _, target = case_id.rpartition("@")
        workload, _, label = launch_id.partition(":")
        return replace(
            Launch(
                id=launch_id,
                workload=workload,
                label=label,
                kernel=f"{workload.rpartition('/')[2]}_kernel",
                target=target,
                digest=sha256(f"{case_id} {side}".encode()),
                source_digest=sha256(b"source"),
                source_path=f"{workload}.py",
                sources=(f"{workload}.py",),
                arguments=(),
                signature={"x": "*fp16"},
                constexprs={},
                attributes={},
                options={},
                grid=(1, 1, 1),
                launched=Artifact(stage="launch", digest=sha256(b"call 1"), size_bytes=6),
                places=(1,),
                tier="gate",
                expected=True,
                flops=None,
                min_bytes=None,
                tolerance=None,
            ),
            **changes,
        )

    @staticmethod
    def case(
        case_id: str = "matmul/tma:fp16@sm_90",
        verdict: Verdict = Verdict.UNCHANGED,
        *,
        base: Mapping[str, Any] | None = None,
        head: Mapping[str, Any] | None = None,
        **changes: Any,
    ) -> Case:
        launch = Build.launch(case_id)
        changed = verdict is Verdict.CHANGED
        stages: dict[str, StageStatus] = {}
        if verdict in {Verdict.UNCHANGED, Verdict.ABSORBED, Verdict.CHANGED}:
            ttgir = StageStatus.IDENTICAL if verdict is Verdict.UNCHANGED else StageStatus.CHANGED
            last = StageStatus.CHANGED if changed else StageStatus.EQUIVALENT
            stages = {"ttir": StageStatus.IDENTICAL, "ttgir": ttgir}
            stages.update(dict.fromkeys(_CODE[Build.target(launch.target).backend], last))
        broken = verdict in {Verdict.BROKEN, Verdict.FAILING}
        failure = Failure(
            kind=FailureKind.ERROR, stage="ttgir", message="PassManager::run failed", signal=None, stderr="…"
        )
        artifact = Artifact(stage="ttir", digest=sha256(b"module {}"), size_bytes=9)
        return replace(
            Case(
                id=case_id,
                workload=launch.workload,
                kernel=launch.kernel,
                target=launch.target,
                tier=launch.tier,
                verdict=verdict,
                origin=Origin(
                    stage="ttgir", pass_name=None, masked=(), charged=(Component.TTGIR_PASSES,), note=""
                )
                if changed
                else None,
                stages=stages,
                facts=Sides(base=base or {}, head=head or {}),
                findings=(),
                nondeterministic=(),
                error="head: PassManager::run failed" if broken else None,
                failures=Sides(
                    base=failure if verdict in {Verdict.FIXED, Verdict.FAILING} else None,
                    head=failure if broken else None,
                ),
                artifacts=Sides(base={"ttir": artifact}, head={"ttir": artifact}),
                launches=Sides(
                    base=None if verdict is Verdict.ADDED else Build.launch(case_id, "base").key,
                    head=None if verdict is Verdict.REMOVED else launch.key,
                ),
                metadata=Sides(base={}, head={}),
                compile_s=Sides(base={"ttir": 0.5}, head={"ttir": 0.5}),
                renamed_from=None,
                group=None,
                edit=sha256(f"edit of {case_id}".encode()) if verdict in GROUPED_VERDICTS else None,
                summary=None,
            ),
            **changes,
        )

    @staticmethod
    def findings(*written: str) -> tuple[Finding, ...]:
        return findings(*written)

    @staticmethod
    def side(name: str = "base", version: str = "3.9.0", **changes: Any) -> Side:
        """A side whose toolchain is called like it."""
        toolchain = Toolchain(
            spec=name,
            version=version,
            digest=sha256(name.encode()),
            path=f"/{name}",
            python=f"/{name}/bin/python",
            root="/t/triton",
            runtime={},
            programs={},
            notes=(),
        )
        corpus = Corpus(root=Path("/corpus"), workloads=("matmul/tma",), digest="")
        return replace(Side(toolchain=toolchain, corpus=corpus, note=""), **changes)

    @staticmethod
    def group(group_id: str, *members: str, **changes: Any) -> ChangeGroup:
        return replace(
            ChangeGroup(
                id=group_id,
                title="+1 ttng.fence_async_shared in the loop body",
                severity="wrong-result risk",
                score=50.0,
                origin_stage="ttgir",
                pass_name="triton-nvidia-gpu-proxy-fence-insertion",
                charged=(Component.TTGIR_PASSES,),
                representative=members[0],
                members=members,
                likeness=1.0,
                reasons=("a fence, barrier or wait was added or removed",),
                edit=("+ ttng.fence_async_shared",),
            ),
            **changes,
        )

    @staticmethod
    def revision(version: str = "3.8.0", **changes: Any) -> Revision:
        return replace(
            Revision(
                spec=f"triton=={version}",
                version=version,
                digest=sha256(version.encode()),
                corpus=sha256(b"corpus"),
                ptxas={"ptxas": sha256(b"ptxas")},
                note="",
                revision="",
            ),
            **changes,
        )

    @staticmethod
    def run(*cases: Case, groups: tuple[ChangeGroup, ...] = (), **changes: Any) -> Run:
        group_of = {member: group.id for group in groups for member in group.members}
        cases = tuple(replace(case, group=group_of.get(case.id, case.group)) for case in cases)
        names = list(dict.fromkeys(case.target for case in cases)) or ["sm_90"]
        targets = tuple(Build.target(name) for name in names)
        launches = [
            launch
            for case in cases
            for side, digest in (("base", case.launches.base), ("head", case.launches.head))
            if (launch := Build.launch(case.id, side)).key == digest
        ]
        return replace(
            Run(
                schema=SCHEMA,
                irdiff_version="0.1.0",
                normalizer_version="1",
                created="2026-01-02T03:04:05+00:00",
                command=("compare", "triton==3.8.0", "triton==3.9.0"),
                options=DEFAULT_OPTIONS,
                base=Build.revision("3.8.0"),
                head=Build.revision("3.9.0"),
                targets=targets,
                environment={"TRITON_DEFAULT_FP_FUSION": "1"},
                summary=radius.summarize(cases, targets),
                cases=cases,
                launches={launch.key: launch for launch in launches},
                groups=groups,
                reach=None,
                edited=None,
                edited_lines=None,
                cut_from="",
                notes=(),
                duration_s=12.5,
            ),
            **changes,
        )


@pytest.fixture
def build() -> type[Build]:
    return Build


@pytest.fixture
def launch() -> Launch:
    """One that nothing is known of but its names."""
    return Build.launch(
        "a/b:c@sm_90", kernel="k", digest="0" * 64, source_digest="1" * 64, signature={}, tier="core"
    )
