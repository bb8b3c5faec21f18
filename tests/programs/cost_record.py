"""How good the estimates of time are: against the measured times of pairs of releases.

    python -m tests.programs.cost_record estimate RUN PAIR NVDISASM >> ESTIMATES.tsv   # RUN of triton==A triton==B
    python -m tests.programs.cost_record judge reports/samples/release-times-sm_90.tsv ESTIMATES.tsv

`estimate` needs no GPU. `judge` prints for each pair what the README of `irdiff/cost` shows, and the same of
plain baselines: instructions of the PTX, registers, code size.
"""

import collections
import csv
import math
import sys
import time
from bisect import bisect_left, bisect_right
from multiprocessing import Pool
from pathlib import Path

COLUMNS = ("pair", "case", "ratio", "low", "high", "confidence", "bound_base", "bound_head", "base_us", "head_us",
           "ptx", "registers", "code", "reasons", "cpu_s")  # fmt: skip
_BASELINES = {"ptx": "ptx.total", "registers": "registers", "code": "code_bytes"}


def _one(job):
    from irdiff import cost, work
    from irdiff.resolve import targets
    from irdiff.run import run_folder

    pair, folder, nvdisasm, case, launches = job
    begin = time.process_time()
    target = targets.load(Path(__file__).parents[2] / "targets" / f"{case.target}.toml")
    row = dict.fromkeys(COLUMNS, "") | {"pair": pair, "case": case.id}
    for name, fact in _BASELINES.items():
        before, after = (float(facts.get(fact) or 1) for facts in case.facts)
        row[name] = f"{after / before:.5f}"
    disassembler, sides = work.Disassembler(Path(nvdisasm)), []
    for side in ("base", "head"):
        artifact, launch = case.artifacts.of(side).get("cubin"), launches[side]
        if artifact is None or launch is None:
            return row | {"confidence": "no binary"}
        binary = run_folder.artifact(Path(folder), artifact.digest)
        compiled = work.CompiledLaunch(
            launch=launch, metadata=case.metadata.of(side), binary=binary, arch=int(target.arch)
        )
        counted = work.count(compiled, disassembler)
        if isinstance(counted, work.NotCountedWork):
            return row | {"confidence": "not estimated", "reasons": counted.reason}
        blocks = int(case.facts.of(side).get("blocks_per_multiprocessor") or 1)
        sides.append(cost.of_launch(counted, launch, blocks, cost.rates(target)))
    found = cost.estimate(*sides)
    row |= {"base_us": f"{sides[0].microseconds:.3f}", "head_us": f"{sides[1].microseconds:.3f}",
            "cpu_s": f"{time.process_time() - begin:.2f}"}  # fmt: skip
    if isinstance(found, cost.NotEstimated):
        return row | {"confidence": "not estimated", "reasons": found.reason}
    return row | {
        "ratio": f"{found.ratio:.5f}", "low": f"{found.low:.5f}", "high": f"{found.high:.5f}",
        "confidence": str(found.confidence), "bound_base": found.bound_base, "bound_head": found.bound_head,
        "reasons": "; ".join(found.reasons),
    }  # fmt: skip


def estimate(folder: str, pair: str, nvdisasm: str, jobs: str = "2") -> None:
    from irdiff.model import Verdict
    from irdiff.run import run_folder

    run = run_folder.load(Path(folder))
    work = [
        (
            pair,
            folder,
            nvdisasm,
            case,
            {side: run.launches.get(key or "") for side, key in case.launches.items()},
        )
        for case in run.cases
        if case.verdict is Verdict.CHANGED
    ]
    with Pool(int(jobs)) as pool:
        for row in pool.imap(_one, work):
            print(*(row[name] for name in COLUMNS), sep="\t", flush=True)


def _auc(scores, labels):
    ordered, ups = sorted(scores), [score for score, label in zip(scores, labels, strict=True) if label]
    n, others = len(ups), len(scores) - len(ups)
    if not n or not others:
        return math.nan
    ranks = sum((bisect_left(ordered, score) + bisect_right(ordered, score) + 1) / 2 for score in ups)
    return (ranks - n * (n + 1) / 2) / (n * others)


def _ranks(values):
    ordered = sorted(values)
    return [(bisect_left(ordered, value) + bisect_right(ordered, value)) / 2 for value in values]


def _correlation(xs, ys):
    x, y = _ranks(xs), _ranks(ys)
    mx, my = sum(x) / len(x), sum(y) / len(y)
    product = sum((a - mx) * (b - my) for a, b in zip(x, y, strict=True))
    return product / math.sqrt(sum((a - mx) ** 2 for a in x) * sum((b - my) ** 2 for b in y) or math.inf)


def judge(measured_file: str, estimates_file: str) -> None:
    measured = {(row["pair"], row["case"]): math.log(float(row["ratio"])) for row in _rows(measured_file)}
    pairs = collections.defaultdict(list)
    estimates = [
        dict(zip(COLUMNS, line.split("\t"), strict=True))
        for line in Path(estimates_file).read_text().splitlines()
    ]
    for row in estimates:
        if (row["pair"], row["case"]) in measured:
            pairs[row["pair"]].append((row, measured[row["pair"], row["case"]]))
    for pair, rows in sorted(pairs.items()):
        told = [(row, truth) for row, truth in rows if row["ratio"]]
        print(f"{pair}: {len(rows)} timed, {len(told)} estimated")
        # beside the baselines all cases count: what is not estimated is taken as equal
        figures = {"estimate": [math.log(float(row["ratio"])) if row["ratio"] else 0.0 for row, _ in rows]}
        figures |= {name: [math.log(float(row[name])) for row, _ in rows] for name in _BASELINES}
        truths = [truth for _, truth in rows]
        for name, scores in figures.items():
            _print(name, scores, truths)
        _print(
            "estimated only", [math.log(float(row["ratio"])) for row, _ in told], [truth for _, truth in told]
        )
        for confidence in sorted({row["confidence"] for row, _ in told}):
            chosen = [(row, truth) for row, truth in told if row["confidence"] == confidence]
            within = sum(abs(truth) < math.log(1.01) for _, truth in chosen)
            inside = sum(
                math.log(float(row["low"])) <= truth <= math.log(float(row["high"])) for row, truth in chosen
            )
            sign = sum((math.log(float(row["ratio"])) > 0) == (truth > 0) for row, truth in chosen)
            print(f"  {confidence}: {len(chosen)} ({len(chosen) / len(rows):.1%} of the timed), {within} within 1 %, "
                  f"{inside} in their range, {sign} with this sign")  # fmt: skip
        for row, truth in told:
            if row["confidence"] == "no change expected" and abs(truth) >= math.log(1.01):
                print(f"    not so: {row['case']} {(math.exp(truth) - 1) * 100:+.1f} %")


def _print(name, scores, truths) -> None:
    big = [(s, t) for s, t in zip(scores, truths, strict=True) if abs(t) > math.log(1.1)]
    right = [(s, t) for s, t in big if s * t > 0]
    factor = sum(0.5 <= s / t <= 2 for s, t in right)
    first = sorted(range(len(scores)), key=lambda n: -scores[n])[: max(1, len(scores) // 4)]
    slow = {n for n, truth in enumerate(truths) if truth > math.log(1.03)}
    print(f"  {name:14s} AUC slower by 2 % {_auc(scores, [t > math.log(1.02) for t in truths]):.2f}, "
          f"by 1 % {_auc(scores, [t > math.log(1.01) for t in truths]):.2f}, "
          f"faster by 1 % {_auc([-s for s in scores], [t < -math.log(1.01) for t in truths]):.2f}, "
          f"rank correlation {_correlation(scores, truths):+.2f}, "
          f"beyond 10 %: sign {len(right)} of {len(big)}, factor two {factor}, "
          f"first quarter finds {len(slow & set(first))} of {len(slow)} slower by 3 %")  # fmt: skip


def _rows(file):
    with Path(file).open(newline="") as lines:
        yield from csv.DictReader(lines, delimiter="\t")


if __name__ == "__main__":
    {"estimate": estimate, "judge": judge}[sys.argv[1]](*sys.argv[2:])
