"""Runs the corpus on this machine's GPU and compares every launch with its PyTorch reference.

    python irdiff/worker/__main__.py verify --corpus corpus --targets targets --target sm_90 [--workload GLOB]

Uses this interpreter's own torch and triton. Prints one JSON object a line: `id`, `ok`, `why`, `rtol`,
`atol`, `max_abs_error`, `relative_norm`, `tolerance_used` (the largest error of an element over what its
tolerance allows: right up to 1), `median_us`, `tflops`, `gb_per_s`, `peak_percent` and what it is a
percentage of.
"""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import json
import os
import statistics
import time
import traceback

from . import corpus_api, fills

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
_MEASURED = (
    "why max_abs_error relative_norm tolerance_used median_us tflops gb_per_s peak_percent peak_of"
).split()


def main(words):
    import tomllib

    import torch
    import triton

    from . import workloads

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--targets", required=True, help="folder of target files")
    parser.add_argument("--target", required=True, help="name of this GPU among the targets: sm_90")
    parser.add_argument("--workload", default="*", help="pattern of FAMILY/NAME")
    options = parser.parse_args(words)
    root = os.path.abspath(options.corpus)
    with open(os.path.join(options.targets, options.target + ".toml"), "rb") as file:
        facts = tomllib.load(file)["facts"]
    corpus_api.use_torch(torch)
    failed = 0
    for name in _names(root, options.workload):
        if not workloads.is_for_this_release(root, name):
            continue
        for label, entry in workloads.load(root, name).LAUNCHES.items():
            if entry.expects(options.target, triton.__version__):
                row = {"id": f"{name}:{label}@{options.target}", **_verify(torch, entry, facts)}
                failed += not row["ok"]
                print(json.dumps(row), flush=True)
    return 1 if failed else 0


def _names(root, pattern):
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(set(folders) - {"packs", "__pycache__"})
        for file in sorted(names):
            name = os.path.relpath(os.path.join(folder, file), root)
            if file.endswith(".py") and fnmatch.fnmatch(name[:-3], pattern):
                yield name[:-3]


def _verify(torch, entry, facts):
    row = dict.fromkeys(_MEASURED)
    row.update(ok=False, rtol=entry.facts["rtol"], atol=entry.facts["atol"])
    begin = time.perf_counter()
    try:
        storages: dict = {}
        args = [_real(torch, value, storages) for value in entry.args]
        kwargs = {name: _real(torch, value, storages) for name, value in entry.kwargs.items()}
        result = entry.function(*args, **kwargs)
        torch.cuda.synchronize()
        row.update(_compared(torch, entry, result, args, kwargs))
        row["median_us"] = round(_median_us(torch, lambda: entry.function(*args, **kwargs)), 2)
        row.update(_rates(entry, args, facts, row["median_us"]))
    except Exception as error:
        traceback.print_exc()
        row["why"] = f"{type(error).__name__}: {' '.join(str(error).split())}"[:400]
    row["seconds"] = round(time.perf_counter() - begin, 2)
    torch.cuda.empty_cache()
    return row


def _real(torch, value, storages):
    """The value with real tensors where fakes were; two views of one storage stay so."""
    if isinstance(value, (list, tuple)):
        return type(value)(_real(torch, item, storages) for item in value)
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
        storages[number] = fills.storage_of(torch, row, elements, (0, len(storages)))
    return fills.materialize(torch, row, storage=storages[number])


def _compared(torch, entry, result, args, kwargs):
    facts = entry.facts
    if facts["reference"] is None:
        return {"why": "no reference"}
    # An in-place kernel's reference must see what the kernel saw; such workloads copy before they write.
    with _exact_products(torch):
        expected = facts["reference"](*args, **kwargs)
    results, expected = (value if isinstance(value, tuple) else (value,) for value in (result, expected))
    if len(expected) != len(results):
        return {"why": f"{len(results)} results, {len(expected)} in the reference"}
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
        count = int((~(error <= allowed)).sum())
        if count:
            bounds = f"rtol {facts['rtol']} atol {facts['atol']}"
            reasons.append(f"result {place}: {count} of {got.numel()} outside {bounds}")
    return {
        "ok": not reasons,
        "why": "; ".join(reasons) or None,
        "max_abs_error": worst_absolute,
        "relative_norm": worst_relative,
        "tolerance_used": worst_used,
    }


@contextlib.contextmanager
def _exact_products(torch):
    """Lets references multiply in full fp32, whatever this machine's torch does by default."""
    backend = torch.backends.cuda.matmul
    before, backend.allow_tf32 = backend.allow_tf32, False
    try:
        yield
    finally:
        backend.allow_tf32 = before


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


def _rates(entry, args, facts, median_us):
    """Rates, and the larger of the two percentages of peak: what bounds the launch."""
    row, shares = {}, []
    if entry.facts["min_bytes"]:
        row["gb_per_s"] = round(entry.facts["min_bytes"] / median_us / 1e3, 1)
        if "memory_tb_per_s" in facts:
            shares.append((100 * row["gb_per_s"] / 1000 / facts["memory_tb_per_s"], "memory_tb_per_s"))
    if entry.facts["flops"]:
        row["tflops"] = round(entry.facts["flops"] / median_us / 1e6, 3)
        first = next((arg for arg in args if hasattr(arg, "data_ptr")), None)
        peak = _PEAKS.get(corpus_api.dtype_name(first.dtype), "") if first is not None else ""
        if peak in facts:
            shares.append((100 * row["tflops"] / facts[peak], peak))
    if shares:
        percent, row["peak_of"] = max(shares)
        row["peak_percent"] = round(percent, 1)
    return row
