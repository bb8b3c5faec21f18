"""Runs the corpus on this machine's GPU and compares every launch with its PyTorch reference.

    python irdiff/worker/verify.py --corpus corpus --target sm_90 [--workload GLOB] [--json OUT]

Uses this interpreter's own torch and triton. One JSON object a line, on stdout and in OUT: `id`, `ok`,
`why`, `rtol`, `atol`, `max_abs_error`, `relative_norm`, `tolerance_used` (the largest error of an element
over what its tolerance allows: right up to 1), `median_us`, `tflops`, `gb_per_s`, `peak_percent` and what
it is a percentage of.
"""

from __future__ import annotations

import argparse
import fnmatch
import importlib.util
import json
import os
import statistics
import sys
import time
import traceback

_HERE = os.path.dirname(os.path.abspath(__file__))
_WARM_UP = 3
_SAMPLES = 20
_FLUSH_BYTES = 256 << 20  # more than the L2 of any target
# Which peak a launch is held against: that of the tensors it multiplies.
_PEAKS = {
    "fp8e4nv": "peak_fp8_tflops",
    "fp8e5": "peak_fp8_tflops",
    "i8": "peak_fp8_tflops",
    "fp16": "peak_fp16_tflops",
    "bf16": "peak_fp16_tflops",
    "fp32": "peak_tf32_tflops",
}


def _load_package():
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != _HERE]
    spec = importlib.util.spec_from_file_location(
        "irdiff_worker", os.path.join(_HERE, "__init__.py"), submodule_search_locations=[_HERE]
    )
    package = importlib.util.module_from_spec(spec)
    sys.modules["irdiff_worker"] = package
    spec.loader.exec_module(package)
    import irdiff_worker.corpus_api

    sys.modules["irdiff_corpus"] = irdiff_worker.corpus_api


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--target", required=True, help="name of this GPU among the targets: sm_90")
    parser.add_argument("--targets", help="folder of target files (default: ../targets beside the corpus)")
    parser.add_argument("--workload", default="*", help="pattern of FAMILY/NAME")
    parser.add_argument("--json", help="also write the lines here")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(argv)
    _load_package()
    import torch
    import triton
    from irdiff_worker import capture, corpus_api

    root = os.path.abspath(options.corpus)
    folder = os.path.abspath(options.targets or os.path.join(root, "..", "targets"))
    facts = _target_facts(os.path.join(folder, options.target + ".toml"))
    output = open(options.json, "w") if options.json else None
    corpus_api.use_torch(torch)
    failed = 0
    for name in _workloads(root, options.workload):
        if not capture.wanted_here(capture.release_bounds(root, name)):
            continue
        module = capture.load_workload(root, name)
        for label, entry in module.LAUNCHES.items():
            if not entry.expects(options.target, triton.__version__):
                continue
            row = {"id": f"{name}:{label}@{options.target}", **_verify(torch, entry, facts, options.seed)}
            failed += not row["ok"]
            line = json.dumps(row)
            print(line, flush=True)
            if output:
                output.write(line + "\n")
                output.flush()
    return 1 if failed else 0


def _target_facts(path):
    import tomllib

    with open(path, "rb") as file:
        return tomllib.load(file)["facts"]


def _workloads(root, pattern):
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(set(folders) - {"packs", "__pycache__"})
        for file in sorted(names):
            name = os.path.relpath(os.path.join(folder, file), root)
            if file.endswith(".py") and fnmatch.fnmatch(name[:-3], pattern):
                yield name[:-3]


def _verify(torch, entry, facts, seed):
    row = dict.fromkeys(
        (
            "why",
            "max_abs_error",
            "relative_norm",
            "tolerance_used",
            "median_us",
            "tflops",
            "gb_per_s",
            "peak_percent",
            "peak_of",
        )
    )
    row.update(ok=False, rtol=entry.facts["rtol"], atol=entry.facts["atol"])
    begin = time.perf_counter()
    try:
        storages = {}
        args = [_real(torch, value, storages, seed) for value in entry.args]
        kwargs = {name: _real(torch, value, storages, seed) for name, value in entry.kwargs.items()}
        result = entry.function(*args, **kwargs)
        torch.cuda.synchronize()
        _compare(torch, entry, result, args, kwargs, row)
        row["median_us"] = round(_median_us(torch, lambda: entry.function(*args, **kwargs)), 2)
        _rates(entry, args, facts, row)
    except Exception as error:
        traceback.print_exc()
        row["why"] = f"{type(error).__name__}: {' '.join(str(error).split())}"[:400]
    row["seconds"] = round(time.perf_counter() - begin, 2)
    torch.cuda.empty_cache()
    return row


def _real(torch, value, storages, seed):
    """The value with real tensors where fakes were; two views of one storage stay so."""
    from irdiff_worker import corpus_api, fills

    if isinstance(value, (list, tuple)):
        return type(value)(_real(torch, item, storages, seed) for item in value)
    if not isinstance(value, corpus_api.FakeTensor):
        return value
    row = {
        "dtype": value.dtype.short,
        "shape": value.shape,
        "strides": value.strides,
        "storage_offset": value.offset,
        "fill": value.storage.fill,
    }
    number = value.storage.number
    if number not in storages:
        elements = value.storage.size_bytes // value.dtype.itemsize
        # The storage's number makes two inputs of one shape differ, counted from the first of the launch.
        storages[number] = fills.storage_of(torch, row, elements, (seed, len(storages)))
    return fills.materialize(torch, row, storage=storages[number])


def _compare(torch, entry, result, args, kwargs, row):
    facts = entry.facts
    if facts["reference"] is None:
        row["why"] = "no reference"
        return
    results = result if isinstance(result, tuple) else (result,)
    # An in-place kernel's reference must see what the kernel saw; such workloads copy before they write.
    with _exact_products(torch):
        expected = facts["reference"](*args, **kwargs)
    expected = expected if isinstance(expected, tuple) else (expected,)
    if len(expected) != len(results):
        row["why"] = f"{len(results)} results, {len(expected)} in the reference"
        return
    worst_absolute, worst_relative, worst_used, reasons = 0.0, 0.0, 0.0, []
    for place, (got, want) in enumerate(zip(results, expected)):
        if want is None:
            continue
        if tuple(got.shape) != tuple(want.shape):
            reasons.append(f"result {place}: shape {tuple(got.shape)}, reference {tuple(want.shape)}")
            continue
        got, want = got.double(), want.double()
        same = (got == want) | (got.isnan() & want.isnan())
        error = torch.where(same, torch.zeros_like(got), (got - want).abs())
        worst_absolute = max(worst_absolute, error.max().item())
        worst_relative = max(worst_relative, (error.norm() / want.norm().clamp_min(1e-30)).item())
        allowed = facts["atol"] + facts["rtol"] * want.abs()
        # An error of 0 where 0 is allowed is right; no other is.
        worst_used = max(worst_used, (error / allowed.clamp_min(1e-300)).nan_to_num(1e300).max().item())
        outside = ~(error <= allowed)
        count = int(outside.sum())
        if count:
            reasons.append(
                f"result {place}: {count} of {got.numel()} outside rtol {facts['rtol']} atol {facts['atol']}"
            )
    row.update(ok=not reasons, why="; ".join(reasons) or None)
    row.update(max_abs_error=worst_absolute, relative_norm=worst_relative, tolerance_used=worst_used)


class _exact_products:
    """Lets references multiply in full fp32, whatever this machine's torch does by default."""

    def __init__(self, torch):
        self.backend = torch.backends.cuda.matmul

    def __enter__(self):
        self.before, self.backend.allow_tf32 = self.backend.allow_tf32, False

    def __exit__(self, *_):
        self.backend.allow_tf32 = self.before


def _median_us(torch, call):
    """Median of 20 calls by CUDA events, each behind a write that empties the L2. Calls of a workload may
    launch several kernels and clear their outputs: that is in it.
    """
    flush = torch.empty(_FLUSH_BYTES // 4, dtype=torch.int32, device="cuda")
    for _ in range(_WARM_UP):
        call()
    pairs = []
    for _ in range(_SAMPLES):
        flush.zero_()
        torch.cuda._sleep(1_000_000)  # the host runs ahead, so that its own time is not in the events
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        call()
        end.record()
        pairs.append((begin, end))
    torch.cuda.synchronize()
    return statistics.median(begin.elapsed_time(end) * 1000 for begin, end in pairs)


def _rates(entry, args, facts, row):
    """Rates, and the larger of the two percentages of peak: what bounds the launch."""
    seconds = row["median_us"] * 1e-6
    shares = []
    if entry.facts["min_bytes"]:
        row["gb_per_s"] = round(entry.facts["min_bytes"] / seconds / 1e9, 1)
        if "memory_tb_per_s" in facts:
            shares.append((100 * row["gb_per_s"] / 1000 / facts["memory_tb_per_s"], "memory_tb_per_s"))
    if entry.facts["flops"]:
        row["tflops"] = round(entry.facts["flops"] / seconds / 1e12, 3)
        first = next((arg for arg in args if hasattr(arg, "data_ptr")), None)
        peak = _PEAKS.get(_short_name(first)) if first is not None else None
        if peak in facts:
            shares.append((100 * row["tflops"] / facts[peak], peak))
    if shares:
        percent, of = max(shares)
        row.update(peak_percent=round(percent, 1), peak_of=of)


def _short_name(tensor):
    from irdiff_worker import corpus_api

    return corpus_api.dtype_name(tensor.dtype)


if __name__ == "__main__":
    sys.exit(main())
