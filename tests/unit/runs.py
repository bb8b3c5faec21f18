"""Small valid runs and timings for unit tests, every part with plain defaults: `run(case(...), ...)`."""

from collections.abc import Mapping
from dataclasses import MISSING, fields, replace
from functools import cache
from pathlib import Path
from typing import get_origin, get_type_hints

import zstandard

from irdiff.compare import radius
from irdiff.findings import Finding
from irdiff.group import grouping
from irdiff.group.grouping import Judged
from irdiff.model import (
    DEFAULT_OPTIONS,
    GROUPED_VERDICTS,
    SCHEMA,
    Artifact,
    Case,
    ChangeGroup,
    Compiled,
    Component,
    Failed,
    Failure,
    FailureKind,
    Launch,
    Origin,
    Pair,
    Revision,
    Run,
    Sides,
    StageStatus,
    Target,
    Toolchain,
    Verdict,
)  # fmt: skip
from irdiff.resolve.corpus import Corpus
from irdiff.resolve.sides import Side
from irdiff.run import run_folder
from irdiff.store import sha256
from irdiff.timing import results
from irdiff.timing.results import GpuRecord, OutputCheck, OutputStatus, TimingProtocol, TimingResults
from tests.texts import text_of


def findings(*written):
    """As they are written."""
    return tuple(map(Finding.parse, written))


def told(found):
    return tuple(map(str, found))


FAILURE = Failure(
    kind=FailureKind.ERROR, stage="ttgir", message="PassManager::run failed", signal=None, stderr="…"
)
TTGIR = text_of("runs/ttgir.ttgir")
TTGIR_AT_HEAD = TTGIR.replace("addf %c, %c", "mulf %c, %c").replace(
    "    tt.return", "    ttng.fence_async_shared {bCluster = false}\n    tt.return"
)
_CODE = {"cuda": ("ptx", "sass"), "hip": ("llir", "amdgcn")}


@cache
def _nothing(kind):
    empty = {Mapping: {}, dict: {}, tuple: (), str: "", bool: False, int: 0, float: 0.0}
    stated = {row.name for row in fields(kind) if row.default_factory is not MISSING}
    hints = {name: hint for name, hint in get_type_hints(kind).items() if name not in stated}
    return {name: empty.get(get_origin(hint) or hint) for name, hint in hints.items()}


def blank(kind, **fields):
    """Nothing is in what is not given: an empty collection or text, 0, or None."""
    return kind(**(_nothing(kind) | fields))


def target(name="sm_90"):
    backend, arch, warp = ("hip", "gfx942", 64) if name.startswith("gf") else ("cuda", 90, 32)
    return blank(Target, name=name, backend=backend, arch=arch, warp_size=warp, title=name.upper())


def launch(case_id, side="head", **changes):
    launch_id, _, target = case_id.rpartition("@")
    workload, _, label = launch_id.partition(":")
    source = f"{workload}.py"
    names = {"id": launch_id, "workload": workload, "label": label, "target": target, "source_path": source}
    made = blank(
        Launch, **names, sources=(source,), kernel=f"{workload.rpartition('/')[2]}_kernel",
        digest=sha256(f"{case_id} {side}".encode()), source_digest=sha256(b"source"), signature={"x": "*fp16"},
        launched=Artifact(stage="launch", digest=sha256(b"call 1"), size_bytes=6),
        grid=(1, 1, 1), places=(1,), tier="gate", expected=True,
    )  # fmt: skip
    return replace(made, **changes)


def pair(case_id, base=None, head=None, **changes):
    launch_id, _, name = case_id.rpartition("@")
    names = {"launch_id": launch_id, "target": target(name)}
    made = blank(Pair, **names, base=base, head=head, supported=Sides(base=True, head=True))
    return replace(made, **changes)


def case(case_id="matmul/tma:fp16@sm_90", verdict=Verdict.UNCHANGED, *, base=None, head=None, **changes):
    """`base` and `head` are facts."""
    launched = launch(case_id)
    changed, broken = verdict is Verdict.CHANGED, verdict in {Verdict.BROKEN, Verdict.FAILING}
    artifact = Artifact(stage="ttir", digest=sha256(b"module {}"), size_bytes=9)
    names = {name: getattr(launched, name) for name in ("workload", "kernel", "target", "tier")}
    added, removed = verdict is Verdict.ADDED, verdict is Verdict.REMOVED
    failing = FAILURE if verdict in {Verdict.FIXED, Verdict.FAILING} else None
    keys = (None if added else launch(case_id, "base").key, None if removed else launched.key)
    made = blank(
        Case, id=case_id, verdict=verdict, **names, stages=_stages(verdict, launched.target),
        origin=origin("ttgir", None, Component.TTGIR_PASSES) if changed else None,
        error="head: PassManager::run failed" if broken else None,
        edit=sha256(f"edit of {case_id}".encode()) if verdict in GROUPED_VERDICTS else None,
        facts=Sides(base=base or {}, head=head or {}), launches=Sides(base=keys[0], head=keys[1]),
        failures=Sides(base=failing, head=FAILURE if broken else None), metadata=Sides(base={}, head={}),
        artifacts=Sides(base={"ttir": artifact}, head={"ttir": artifact}),
        compile_s=Sides(base={"ttir": 0.5}, head={"ttir": 0.5}),
    )  # fmt: skip
    return replace(made, **changes)


def _stages(verdict, target_name):
    if verdict not in {Verdict.UNCHANGED, Verdict.IR_ONLY, Verdict.CHANGED}:
        return {}
    ttgir = StageStatus.IDENTICAL if verdict is Verdict.UNCHANGED else StageStatus.CHANGED
    last = StageStatus.CHANGED if verdict is Verdict.CHANGED else StageStatus.EQUIVALENT
    code = dict.fromkeys(_CODE[target(target_name).backend], last)
    return {"ttir": StageStatus.IDENTICAL, "ttgir": ttgir, **code}


def change_groups(described, noise=None):
    """Of cases with their descriptions."""
    judged = [Judged(None, case, description, None) for case, description in described]
    return grouping.change_groups(grouping.group(judged), noise or {})


def origin(stage="ttgir", name=None, *charged):
    return blank(Origin, stage=stage, pass_name=name, charged=charged)


def side(name="base", version="3.9.0", **changes):
    """A side whose toolchain is called like it."""
    places = {"path": f"/{name}", "python": f"/{name}/bin/python", "root": "/t/triton"}
    toolchain = blank(Toolchain, spec=name, version=version, digest=sha256(name.encode()), **places)
    corpus = blank(Corpus, root=Path("/corpus"), workloads=("matmul/tma",))
    return replace(Side(toolchain=toolchain, corpus=corpus, note=""), **changes)


def kept(store, texts):
    """Artifacts by stage, which the store has."""
    made = {stage: text if isinstance(text, bytes) else text.encode() for stage, text in texts.items()}
    return {
        stage: Artifact(stage=stage, digest=store.put(content), size_bytes=len(content))
        for stage, content in made.items()
    }


def compiled(artifacts=None, **changes):
    return blank(Compiled, artifacts=artifacts or {}, **changes)


def failed(kind=FailureKind.ERROR, **of_failure):
    failure = replace(FAILURE, kind=kind, **{"message": "it failed", "stderr": "", **of_failure})
    return blank(Failed, failure=failure, transient=kind is FailureKind.TIMEOUT)


def group(group_id, *members, **changes):
    made = ChangeGroup(
        id=group_id, title="+1 ttng.fence_async_shared in the loop body", severity="hazard",
        origin_stage="ttgir", pass_name="triton-nvidia-gpu-proxy-fence-insertion", charged=(Component.TTGIR_PASSES,),
        representative=members[0], members=members, similarity=1.0, edit=("+ ttng.fence_async_shared",),
        reasons=("a fence, barrier or wait was added or removed",),
    )  # fmt: skip
    return replace(made, **changes)


def revision(version="3.8.0", **changes):
    digests = {"digest": sha256(version.encode()), "corpus": sha256(b"corpus")}
    names = {"spec": f"triton=={version}", "version": version, "ptxas": {"ptxas": sha256(b"ptxas")}}
    made = blank(Revision, **names, **digests)
    return replace(made, **changes)


def run(*cases, groups=(), **changes):
    group_of = {member: group.id for group in groups for member in group.members}
    cases = tuple(replace(case, group=group_of.get(case.id, case.group)) for case in cases)
    targets = tuple(target(name) for name in dict.fromkeys(case.target for case in cases) or ["sm_90"])
    launches = [(launch(case.id, name), key) for case in cases for name, key in case.launches.items()]
    made = blank(
        Run, schema=SCHEMA, irdiff_version="0.1.0", normalizer_version="1", created="2026-01-02T03:04:05+00:00",
        command=("compare", "triton==3.8.0", "triton==3.9.0"), options=DEFAULT_OPTIONS, duration_s=12.5,
        base=revision("3.8.0"), head=revision("3.9.0"), targets=targets, cases=cases, groups=groups,
        environment={"TRITON_DEFAULT_FP_FUSION": "1"}, summary=radius.summarize(cases, targets),
        launches={key: launched for launched, key in launches if key and launched.key == key},
    )  # fmt: skip
    return replace(made, **changes)


def saved(folder, run):
    """The folder, with `run.json` alone."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "run.json").write_bytes(run_folder.dump(run))
    return folder


STAGES = ("ttir", "ttgir", "llir", "ptx", "sass")


def numbered(number, verdict, stage="ttgir", **changes):
    """One of many cases: families, targets and figures follow from the number."""
    name = ("sm_90", "sm_100", "gfx942", "gfx950")[number % 4]
    family = ("matmul", "attention", "normalization", "elementwise", "moe")[number // 4 % 5]
    changed, moves = verdict in (Verdict.CHANGED, Verdict.IR_ONLY), verdict is Verdict.CHANGED
    pass_name = "tritongpu-pipeline" if stage == "ttgir" else None
    stages = dict.fromkeys(STAGES, StageStatus.EQUIVALENT if moves or changed else StageStatus.IDENTICAL)
    if changed:
        stages |= dict.fromkeys(STAGES[STAGES.index(stage) :] if moves else [stage], StageStatus.CHANGED)
    facts = {"registers": 32 + number * 7 % 190, "shared_bytes": 1024 * (1 + number % 96), "ptx.total": 90}
    head = {**facts, "registers": facts["registers"] + 1 + number % 40} if moves else facts
    begins = origin(stage, pass_name, Component.TTGIR_PASSES) if changed else None
    plain = {"stages": {} if verdict is Verdict.BROKEN else stages, "artifacts": Sides(base={}, head={})}
    case_id = f"{family}/workload_{number // 40:02d}:fp16-{256 * (1 + number // 4)}@{name}"
    return replace(case(case_id, verdict, base=facts, head=head, origin=begins, **plain), **changes)


def large_run(cases, groups, broken=3):
    """`cases` cases of which half changed, in `groups` groups."""
    severities = ("hazard", "rounding", "not shown", "same")
    stages = ("ttir", "ttgir", "llir", "sass")
    rows, members = [], dict[int, list[str]]()
    for number in range(cases):
        verdict = Verdict.IR_ONLY if number % 10 == 0 else Verdict.UNCHANGED
        place = number // 2 % groups if groups else 0
        verdict = Verdict.BROKEN if number < broken else Verdict.CHANGED if number % 2 else verdict
        rows.append(numbered(number, verdict, stages[place % 4] if verdict is Verdict.CHANGED else "ttir"))
        if groups and verdict is Verdict.CHANGED:
            members.setdefault(place, []).append(rows[-1].id)
    made = []
    for place, found in sorted(members.items()):
        title = f"+{1 + place % 4} ttng.fence_async_shared in the loop body ({place})"
        words = {"severity": severities[place % 4], "origin_stage": stages[place % 4], "title": title}
        numbers = {"similarity": 1.0 if place % 2 else 0.9}
        made.append(group(f"g{place:03d}", *sorted(found), **words, **numbers))
    return run(*sorted(rows, key=lambda case: case.id), groups=tuple(made))


def stored(folder, stage, text):
    """A text among the artifacts of a run folder."""
    digest = sha256(text.encode())
    path = folder / "artifacts" / digest[:2] / digest[2:]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(zstandard.compress(text.encode()))
    return Artifact(stage=stage, digest=digest, size_bytes=len(text))


def protocol(**changes):
    facts = {"budget_s": 60.0, "threshold": 0.01, "confidence": 0.95, "processes": 18}
    return blank(TimingProtocol, **(facts | changes))


def check(status=OutputStatus.EQUAL, side=None, message=""):
    return blank(OutputCheck, status=status, side=side, message=message, base_repeats=True)


def gpu(uuid="GPU-1", **changes):
    """One that did nothing else."""
    facts = {"uuid": uuid, "name": "card", "target": "sm_90", "driver": "580"}
    facts |= {"multiprocessors": 132, "sm_clock_mhz": (345.0, 1980.0, 1980.0), "wall_s": 1.0, "busy_s": 0.9}
    facts |= {"memory_bytes": 1, "l2_bytes": 1, "trustworthy": True}
    return blank(GpuRecord, **(facts | changes))


def found(cases, **changes):
    facts = {"schema": results.SCHEMA, "irdiff_version": "0", "duration_s": 2.0}
    facts |= {"created": "2026-01-01T00:00:00+00:00", "protocol": protocol(), "gpus": (gpu(),)}
    return blank(TimingResults, **(facts | {"cases": tuple(cases)} | changes))
