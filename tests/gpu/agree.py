"""Agreement with Triton's own launcher and `do_bench`: `python tests/gpu/agree.py [OUT.json]` on a GPU host.

Five corpus kernels are compiled with the Triton installed here. Three questions, answered in one run:

1. the same binary launched by irdiff and by Triton, interleaved by irdiff's protocol: is the ratio 1?
2. `triton.testing.do_bench`, repeated: what does it say, and how far does it spread?
3. `irdiff time` with that binary on both sides, repeated: what does it say, and how far from 1 is its ratio?
"""

import dataclasses
import importlib
import importlib.util
import json
import math
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))
from irdiff import timing  # noqa: E402
from irdiff.timing import buffers, gpu_process, measure  # noqa: E402
from irdiff.timing.results import TimingProtocol  # noqa: E402
from tests.gpu import compile_here  # noqa: E402

KERNELS = (
    ("elementwise/vector_add", "fp16-16m"),
    ("normalization/softmax", "fp16-4k"),
    ("normalization/rms_norm", "bf16-4k"),
    ("matmul/pointer", "fp16-4096"),
    ("attention/flash_forward", "causal-d128"),
)
REPETITIONS = 5


def corpus_module(workload):
    """A workload as an ordinary module, with real tensors for its outputs."""
    import torch

    package = buffers.fills().__package__
    api = importlib.import_module(f"{package}.corpus_api")
    sys.modules["irdiff_corpus"] = api
    spec = importlib.util.spec_from_file_location(workload.replace("/", "_"), ROOT / f"corpus/{workload}.py")
    module = importlib.util.module_from_spec(spec)
    api._torch = None  # inputs of LAUNCHES stay descriptions
    spec.loader.exec_module(module)
    api.use_torch(torch)
    return module, api


def real_arguments(entry, api, make):
    """The call's arguments, each fake tensor replaced by what `make` gives for its row."""

    def real(value):
        if not isinstance(value, api.FakeTensor):
            return value
        row = {
            "dtype": value.dtype.short,
            "shape": value.shape,
            "strides": value.strides,
            "storage_offset": value.offset,
            "fill": value.storage.fill,
        }
        return make(row)

    return [real(v) for v in entry.args], {name: real(v) for name, v in entry.kwargs.items()}


def triton_arm(torch, entry, api, needed):
    """An arm that launches through Triton: inputs are views of the buffers, outputs its own."""

    def bind(memory):
        unused = list(needed)

        def view(row):
            storage = next(
                s for s in unused if all(s.row[k] == row[k] for k in ("dtype", "shape", "strides", "fill"))
            )
            unused.remove(storage)
            body = memory.body(storage.number).view(buffers.torch_dtype(torch, storage.dtype))
            return torch.as_strided(body, tuple(row["shape"]), tuple(row["strides"]))

        args, kwargs = real_arguments(entry, api, view)
        kept = []  # each launch of a sample has outputs of its own, as in irdiff's arms
        return lambda: kept.append(entry.function(*args, **kwargs))

    return measure.Enqueue(bind=bind, launch=lambda call, _stream: call())


def launcher_ratios(folder, names):
    """Case → ratios Triton's launcher ÷ irdiff's, of the same binary, from fresh buffers each time."""
    import torch

    session = gpu_process.GpuSession(folder)
    card = session.open(0)
    found = {}
    for (workload, label), case in zip(KERNELS, names, strict=True):
        module, api = corpus_module(workload)
        entry = module.LAUNCHES[label]
        _, sides = session.sides(case)
        needed = session.needed(sides, 3)
        initial = buffers.initial_contents(torch, needed, 1)
        entry.function(*real_arguments(entry, api, lambda row: buffers.fills().materialize(torch, row))[0])
        for repetition in range(REPETITIONS):
            memory = buffers.Buffers(torch, needed)
            memory.load(initial)
            arms = {
                "base": session.arm(sides["base"]),
                "control": session.arm(sides["base"]),
                "head": triton_arm(torch, entry, api, needed),
            }
            if repetition % 2:
                arms = dict(reversed(arms.items()))
            pace = measure.Pace(slice_s=0.5, l2_bytes=card.l2_bytes, seed=repetition)
            rows, _ = measure.measure(torch, arms, needed, initial, memory, pace)
            times = {arm: [r.elapsed_us for r in rows if r.arm == arm] for arm in arms}
            middle = {arm: statistics.median(values) for arm, values in times.items()}
            found.setdefault(case, []).append(middle["head"] / middle["base"])
    return found


def bench_times(workload, label):
    import torch
    import triton

    module, api = corpus_module(workload)
    entry = module.LAUNCHES[label]
    args, kwargs = real_arguments(entry, api, lambda row: buffers.fills().materialize(torch, row))
    begin = time.monotonic()
    times = [
        1e3 * triton.testing.do_bench(lambda: entry.function(*args, **kwargs), return_mode="median")
        for _ in range(REPETITIONS)
    ]
    return times, (time.monotonic() - begin) / REPETITIONS


def irdiff_measurements(folder):
    """Case → measurements of `irdiff time`, and the seconds a case took."""
    found, spent = {}, []
    for repetition in range(REPETITIONS):
        protocol = TimingProtocol(
            budget_s=25.0, threshold=0.01, confidence=0.95, processes=18, seed=repetition,
            verify_only=False,
        )  # fmt: skip
        options = timing.TimingOptions(
            patterns=(), every=False, protocol=protocol, environment=dict(os.environ), say=lambda line: None
        )
        for name in ("timing.json", "timing-samples.jsonl.zst"):
            (folder / name).unlink(missing_ok=True)
        begin = time.monotonic()
        for row in timing.time_run(folder, options).cases:
            found.setdefault(row.case, []).append(row.measurement)
        spent.append((time.monotonic() - begin) / len(KERNELS))
    return found, statistics.mean(spent)


def interval(ratios):
    """95 % interval of the mean, by Student's t over repetitions."""
    from scipy import stats

    mean, error = statistics.mean(ratios), statistics.stdev(ratios) / math.sqrt(len(ratios))
    reach = float(stats.t.ppf(0.975, len(ratios) - 1)) * error
    return mean, mean - reach, mean + reach


def main():
    folder = Path(tempfile.mkdtemp())
    builder = compile_here.Builder(compile_here.store_in(folder / "store"))
    pairs = []
    for workload, label in KERNELS:
        for name, built in builder.build(ROOT / "corpus", workload, {label}).items():
            pairs.append((name, built, built))
    builder.close()
    run = builder.write(folder / "run", pairs)
    names = [case.id for case in run.cases]
    measured, spent = irdiff_measurements(folder / "run")
    ratios = launcher_ratios(folder / "run", names)
    rows = []
    for (workload, label), case in zip(KERNELS, names, strict=True):
        times, bench_s = bench_times(workload, label)
        mean, low, high = interval(ratios[case])
        ours = measured[case]
        spread = 100 * (max(times) - min(times)) / statistics.median(times)
        off = 100 * max(abs(m.ratio - 1) for m in ours)
        print(
            f"{case:44s} Triton's launcher / irdiff's {mean:.4f} [{low:.4f}, {high:.4f}]   "
            f"do_bench {statistics.median(times):7.2f} us, spread {spread:.2f} %, {bench_s:.2f} s   "
            f"irdiff {statistics.median(m.base_us for m in ours):7.2f} us, A/A off {off:.2f} %, {spent:.2f} s"
        )
        rows.append(
            {
                "case": case,
                "launcher_ratio": [mean, low, high],
                "do_bench_us": times,
                "do_bench_s": bench_s,
                "irdiff": [dataclasses.asdict(m) for m in ours],
                "irdiff_s": spent,
            }
        )
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
