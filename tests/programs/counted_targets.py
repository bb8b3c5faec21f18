"""Compares what launches execute on one target with what the same launches execute on another.

    python -m tests.programs.counted_targets RUN[,RUN…] TARGET OTHER NVDISASM [--side head]

The runs hold the launches of both targets: `irdiff compare triton==3.8.0 triton==3.9.0 --target sm_90 --target
sm_100 --no-attribute --no-recheck --out RUN`. Each launch that was compiled for both is a line; the last lines say in
how many each figure is the same, and how many were counted. No hardware is asked.
"""

import collections
import sys
import time
from pathlib import Path

from irdiff import work
from irdiff.counted_work import Amount, NotCountedWork, Work
from irdiff.run import run_folder

FIGURES = {
    "operations": lambda counted: counted.matrix_flops,
    "bytes loaded": lambda counted: _bytes(counted, "global load", "global to shared"),
    "bytes stored": lambda counted: _bytes(counted, "global store"),
    "atomic bytes": lambda counted: _bytes(counted, "global atomic"),
    "bulk copies": lambda counted: counted.tma_bytes,
    "requests": lambda counted: counted.global_requests,
    "sectors": lambda counted: counted.global_sectors,
}


def _bytes(counted: Work, *spaces: str) -> Amount:
    rows = [counted.bytes_by_space.get(space, Amount(0, 0)) for space in spaces]
    return Amount(sum(row.low for row in rows), sum(row.high for row in rows))


def main(runs: str, target: str, other: str, nvdisasm: str, *options: str) -> int:
    side = options[1] if options else "head"
    readers = work.readers(Path(nvdisasm))
    counted: dict[str, dict[str, Work | NotCountedWork]] = {}
    seconds: collections.Counter[str] = collections.Counter()
    launches = [each for folder in runs.split(",") for each in _launches(Path(folder), side)]
    for name in (target, other):
        chosen = {case: compiled for case, compiled in launches if case.endswith(f"@{name}")}
        for backend, reader in readers.items():
            reader.prepare([each for each in chosen.values() if each.backend == backend])
        begin = time.process_time()
        works = {case: work.count(compiled, readers) for case, compiled in chosen.items()}
        seconds[name] = time.process_time() - begin
        counted[name] = {
            case.rpartition("@")[0]: each if isinstance(each, NotCountedWork) else each.work
            for case, each in works.items()
        }
    _print(counted[target], counted[other])
    for name, works in counted.items():
        known = [each for each in works.values() if isinstance(each, Work)]
        facts = sum(not each.is_least and all(f(each).is_known for f in FIGURES.values()) for each in known)
        print(f"{name}: {len(works)} launches, {len(known)} counted, {facts} of them with no interval; "
              f"{seconds[name]:.0f} s of processor time")  # fmt: skip
        reasons = collections.Counter(
            each.reason for each in works.values() if isinstance(each, NotCountedWork)
        )
        for reason, times in reasons.most_common():
            print(f"  {times} {reason}")
    return 0


def _launches(folder: Path, side: str):
    run = run_folder.load(folder)
    targets = {each.name: each for each in run.targets}
    for case in run.cases:
        key, artifacts = case.launches.of(side), case.artifacts.of(side)
        name = next((name for name in ("cubin", "hsaco") if name in artifacts), None)
        if key and name:
            binary = run_folder.artifact(folder, artifacts[name].digest)
            text = run_folder.artifact(folder, artifacts["amdgcn"].digest) if name == "hsaco" else b""
            yield case.id, work.CompiledLaunch(
                launch=run.launches[key], metadata=case.metadata.of(side), binary=binary,
                backend=targets[case.target].backend, arch=targets[case.target].arch, assembly=text.decode(),
            )  # fmt: skip


def _print(ours, theirs) -> None:
    same: collections.Counter[str] = collections.Counter()
    both = 0
    for name in sorted(ours.keys() & theirs.keys()):
        here, there = ours[name], theirs[name]
        if isinstance(here, NotCountedWork) or isinstance(there, NotCountedWork):
            continue
        both += 1
        words = []
        for figure, amount_of in FIGURES.items():
            one, another = amount_of(here), amount_of(there)
            same[figure] += one == another
            if one != another:
                words.append(f"{figure} {_shown(another)} -> {_shown(one)}")
        if words:
            print(
                f"{name}: {'; '.join(words)}{' (data decide a loop)' if here.is_least or there.is_least else ''}"
            )
    print(
        f"{both} launches counted on both: "
        + ", ".join(f"{name} {same[name]}" for name in FIGURES)
        + " the same"
    )


def _shown(amount: Amount) -> str:
    return f"{amount.low:,}" if amount.is_known else f"{amount.low:,} to {amount.high:,}"


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
