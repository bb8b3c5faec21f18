"""Derives run folders whose truth is known from a real one.

    python tests/gpu/derive.py aa RUN OUT      every case against itself
    python tests/gpu/derive.py power RUN OUT   rows kernels with 1, 2 and 5 % more rows at head

In the second, base and head are one binary: base is launched with 1/1.05 of the captured grid, head with
1, 2 or 5 % more blocks than that. The kernels chosen do the same work in every block, so the time grows as
the grid.
"""

import dataclasses
import shutil
import sys
from pathlib import Path

from irdiff.compare import radius
from irdiff.model import Sides, Verdict
from irdiff.run import run_folder

ROWS = (
    "activation/rope:bf16-32x128",
    *(f"elementwise/{name}" for name in ("dropout:bf16-odd", "vector_add:fp16-16m", "vector_add:fp32-16m")),
    *("elementwise/vector_add:fp32-odd", "normalization/layer_norm:fp16-4k"),
    *(f"normalization/rms_norm:{name}" for name in ("add-bf16-8k", "bf16-4k", "fp16-5k", "fp32-128")),
    *(
        f"normalization/softmax:{name}"
        for name in ("backward-fp16-4k", "backward-fp32-1k", "fp16-4k", "fp32-1k")
    ),
    *(
        f"reduction/reduce:{name}"
        for name in ("argmax-fp32-4k", "rows-bf16-8k", "rows-fp32-64", "welford-fp32-2k")
    ),
    *(f"reduction/scan:{name}" for name in ("cumsum-fp32-1k", "sort-fp32-256")),
    *(f"loss/cross_entropy:{name}" for name in ("bf16-128k", "fp32-32k")),
)


def same_sides(case):
    return dataclasses.replace(
        case,
        artifacts=Sides(base=case.artifacts.base, head=case.artifacts.base),
        launches=Sides(base=case.launches.base, head=case.launches.base),
        metadata=Sides(base=case.metadata.base, head=case.metadata.base),
    )


def with_grid(run_launches, digest, blocks, label):
    launch = run_launches[digest]
    other = dataclasses.replace(launch, label=f"{launch.label}{label}", grid=(blocks, *launch.grid[1:]))
    run_launches[other.key] = other
    return other.key


def power(run):
    launches, cases = dict(run.launches), []
    for case in run.cases:
        if case.id.split("@")[0] not in ROWS:
            continue
        same = same_sides(case)
        whole = launches[same.launches.base].grid[0]
        least = int(whole / 1.05)
        for percent in (1, 2, 5):
            base = with_grid(launches, same.launches.base, least, "0")
            head = with_grid(launches, same.launches.base, round(least * (1 + percent / 100)), str(percent))
            cases.append(
                dataclasses.replace(same, id=f"{case.id}+{percent}%", launches=Sides(base=base, head=head))
            )
    return dataclasses.replace(run, cases=tuple(cases), launches=launches)


def main():
    kind, source, target = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    run = run_folder.load(source)
    run = dataclasses.replace(run, cases=tuple(c for c in run.cases if c.verdict is Verdict.CHANGED))
    run = power(run) if kind == "power" else dataclasses.replace(run, cases=tuple(map(same_sides, run.cases)))
    cases = tuple(dataclasses.replace(case, group=None) for case in run.cases)
    run = dataclasses.replace(run, cases=cases, groups=(), summary=radius.summarize(cases, run.targets))
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    shutil.copytree(source / "artifacts", target / "artifacts")
    (target / "run.json").write_bytes(run_folder.dump(run))
    print(target, len(run.cases), "cases")


if __name__ == "__main__":
    main()
