"""Runs the corpus on this machine's GPU and compares every launch with its PyTorch reference.

    python irdiff/worker/__main__.py verify --corpus corpus --targets targets --target sm_90 [--workload GLOB]

Prints one JSON object a line: `id`, `ok`, `why`, `rtol`, `atol`, `max_abs_error`, `relative_norm`,
`tolerance_used` (the largest error of an element over what its tolerance allows: right up to 1), `median_us`,
`tflops`, `gb_per_s`, `peak_percent` and what it is a percentage of.

A pack's workload has its own references (`corpus_api.checked`): its tolerance is that of the norm of a
result's error, and its work is counted (operations of the reference by torch, bytes of inputs and results
once each). Without a reference, `ok` is true if it runs, and `why` says so. An autotuned kernel uses its
first config.
"""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import functools
import json
import math
import os
import statistics
import sys
import time
import traceback

from .. import corpus_api, fills
from ..capture import workloads

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
_ERRORS = {"fp8e4nv": 0.1, "fp8e5": 0.2, "bf16": 0.02, "fp16": 0.005, "fp32": 0.002}
"""The largest relative norm of a result's error, by the coarsest type among the inputs; tf32 for fp32."""
_MEASURED = (
    "why max_abs_error relative_norm tolerance_used median_us tflops gb_per_s peak_percent peak_of"
).split()


def main(words):
    import tomllib

    import torch
    import triton

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--targets", required=True, help="folder of target files")
    parser.add_argument("--target", required=True, help="name of this GPU among the targets: sm_90")
    parser.add_argument("--workload", default="*", help="pattern of FAMILY/NAME")
    parser.add_argument("--part", default="1/1", help="2/8: the second, tenth, … launch")
    parser.add_argument("--done", type=int, default=0, help="launches that are behind us")
    options = parser.parse_args(words)
    part, parts = map(int, options.part.split("/"))
    root = os.path.abspath(options.corpus)
    with open(os.path.join(options.targets, options.target + ".toml"), "rb") as file:
        facts = tomllib.load(file)["facts"]
    corpus_api.use_torch(torch)
    _take_first_config(triton)
    failed = 0
    for place, (case, entry) in enumerate(_entries(root, options, torch, triton.__version__)):
        if place < options.done or place % parts != part - 1:
            continue
        result = {"id": case, **_verify(torch, entry, facts)}
        failed += not result["ok"]
        print(json.dumps(result), flush=True)
        if not _is_usable(torch):  # a fault ends every later call of this process
            again = [*sys.argv[:2], *words, "--done", str(place + 1)]
            os.execv(sys.executable, [sys.executable, *again])
    return 1 if failed else 0


def _take_first_config(triton):
    """Tuning would take longer than everything else."""
    run = triton.runtime.Autotuner.run

    def first(tuner, *args, **kwargs):
        del tuner.configs[1:]
        return run(tuner, *args, **kwargs)

    triton.runtime.Autotuner.run = first


def _is_usable(torch):
    try:
        torch.cuda.synchronize()
    except RuntimeError:
        return False
    return True


def _entries(root, options, torch, release):
    for name in _names(root, options.workload):
        if workloads.is_for_this_release(root, name):
            with torch.device("cuda"):
                launches = workloads.load(root, name).LAUNCHES
            for label, entry in launches.items():
                if entry.expects(options.target, release):
                    yield f"{name}:{label}@{options.target}", entry


def _names(root, pattern):
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(set(folders) - {"packs", "__pycache__"})
        for file in sorted(names):
            name = os.path.relpath(os.path.join(folder, file), root)
            if file.endswith(".py") and file[0] != "_" and fnmatch.fnmatch(name[:-3], pattern):
                yield name[:-3]


def _verify(torch, entry, facts):
    figures = dict.fromkeys(_MEASURED)
    figures.update(ok=False, rtol=entry.facts["rtol"], atol=entry.facts["atol"])
    begin = time.perf_counter()
    try:
        storages: dict = {}
        args = [_real(torch, value, storages) for value in entry.args]
        kwargs = {name: _real(torch, value, storages) for name, value in entry.kwargs.items()}
        corpus_api.checks.clear()
        torch.manual_seed(0)
        with torch.device("cuda"):
            result = entry.function(*args, **kwargs)
            torch.cuda.synchronize()
        if storages or entry.facts["reference"]:
            figures.update(_compared(torch, entry, result, args, kwargs))
            figures["median_us"] = round(_median_us(torch, lambda: entry.function(*args, **kwargs)), 2)
            figures.update(_rates(entry.facts, args, facts, figures["median_us"]))
        else:
            figures.update(_of_checks(torch, list(corpus_api.checks), facts))
    except Exception as error:
        traceback.print_exc()
        right = f" (after {len(corpus_api.checks)} calls that ran)" if corpus_api.checks else ""
        figures["why"] = f"{type(error).__name__}: {' '.join(str(error).split())}"[:400] + right
    figures["seconds"] = round(time.perf_counter() - begin, 2)
    corpus_api.checks.clear()
    with contextlib.suppress(RuntimeError):  # after a fault
        torch.cuda.empty_cache()
    return figures


def _of_checks(torch, checks, facts):
    """Compares each call of one workload with its reference; `ok` without references."""
    if not checks:
        return {"ok": True, "why": "no reference: it runs"}
    reasons, norms, used, microseconds, work = [], [], [], 0.0, {"flops": 0, "min_bytes": 0}
    for number, check in enumerate(checks):
        tensors = [value for value in check.inputs if torch.is_tensor(value)]
        widest = max((_ERRORS.get(corpus_api.dtype_name(value.dtype), 0.0) for value in tensors), default=0.0)
        allowed = widest if check.error is None else check.error
        results = corpus_api.as_tuple(check.results)
        expected, work["flops"] = _counted(torch, check, work["flops"])
        if len(expected) != len(results):
            reasons.append(f"check {number}: {len(results)} results, {len(expected)} in the reference")
            continue
        for place, (got, want) in enumerate(zip(results, expected)):
            if want is None or got is None:
                continue
            name = f"check {number} result {place}"
            if tuple(got.shape) != tuple(want.shape):
                reasons.append(f"{name}: shape {tuple(got.shape)}, reference {tuple(want.shape)}")
                continue
            if got.is_floating_point():
                want = want.to(got.dtype)  # what is too great for one type is so in both
            norms.append(_relative_norm(torch, got.double(), want.double()))
            used.append(norms[-1] / max(allowed, 1e-300))
            if not norms[-1] <= allowed:
                reasons.append(f"{name}: relative norm of the error {norms[-1]:.1e}, allowed {allowed:g}")
        moved = {value.data_ptr(): value for value in (*tensors, *results) if torch.is_tensor(value)}
        work["min_bytes"] += sum(value.numel() * value.element_size() for value in moved.values())
        with torch.device("cuda"):
            microseconds += _median_us(torch, functools.partial(check.function, *check.inputs))
    figures = {"ok": not reasons, "why": "; ".join(reasons) or None, "median_us": round(microseconds, 2)}
    figures["relative_norm"], figures["tolerance_used"] = (
        max(figures, default=None) for figures in (norms, used)
    )
    return {**figures, **_rates(work, checks[0].inputs, facts, figures["median_us"])}


def _counted(torch, check, flops):
    """Returns the reference's results in fp32, and `flops` plus the operations of its products."""
    from torch.utils.flop_counter import FlopCounterMode

    def wide(value):
        return value.float() if torch.is_tensor(value) and value.is_floating_point() else value

    with _exact_products(torch), torch.device("cuda"), FlopCounterMode(display=False) as counter:
        expected = check.reference(*map(wide, check.inputs))
    return corpus_api.as_tuple(expected), flops + counter.get_total_flops()


def _relative_norm(torch, got, want):
    """Positions where both sides are NaN, or the same infinity, count as no error."""
    same = (got == want) | (got.isnan() & want.isnan())
    error = torch.where(same, 0.0, got - want).norm()
    norm = torch.where(want.isfinite(), want, 0.0).norm().clamp_min(1e-30)
    relative = (error / norm).item()
    return relative if math.isfinite(relative) else 1e300


def _real(torch, value, storages):
    """Replaces fakes by real tensors; two views of one storage stay so."""
    if isinstance(value, (list, tuple)):
        return type(value)(_real(torch, item, storages) for item in value)
    if not isinstance(value, corpus_api.FakeTensor):
        return value
    argument = {
        "dtype": value.dtype.short,
        "shape": value.shape,
        "strides": value.strides,
        "storage_offset": value.offset,
        "fill": value.storage.fill,
    }
    number = value.storage.address
    if number not in storages:
        elements = value.storage.size_bytes // value.dtype.itemsize
        # The storage's number makes two inputs of one shape differ, counted from the first of the launch.
        storages[number] = fills.storage_of(torch, argument, elements, (0, len(storages)))
    return fills.materialize(torch, argument, storage=storages[number])


def _compared(torch, entry, result, args, kwargs):
    facts = entry.facts
    if facts["reference"] is None:
        return {"why": "no reference"}
    # An in-place kernel's reference must see what the kernel saw; such workloads copy before they write.
    with _exact_products(torch):
        expected = facts["reference"](*args, **kwargs)
    results, expected = map(corpus_api.as_tuple, (result, expected))
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
    """Makes references multiply in full fp32, whatever torch's default is on this machine."""
    backends = torch.backends.cuda.matmul, torch.backends.cudnn
    before = [backend.allow_tf32 for backend in backends]
    for backend in backends:
        backend.allow_tf32 = False
    try:
        yield
    finally:
        for backend, allowed in zip(backends, before):
            backend.allow_tf32 = allowed


def _median_us(torch, call):
    """Returns the median of 20 calls by CUDA events, each after a write that empties the L2. Includes the
    time of clearing outputs.
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


def _rates(work, args, facts, median_us):
    """Returns rates, and the larger of the two percentages of peak, which bounds the launch."""
    rates, shares = {}, []
    if work["min_bytes"]:
        rates["gb_per_s"] = round(work["min_bytes"] / median_us / 1e3, 1)
        if "memory_tb_per_s" in facts:
            shares.append((100 * rates["gb_per_s"] / 1000 / facts["memory_tb_per_s"], "memory_tb_per_s"))
    if work["flops"]:
        rates["tflops"] = round(work["flops"] / median_us / 1e6, 3)
        first = next((arg for arg in args if hasattr(arg, "data_ptr")), None)
        peak = _PEAKS.get(corpus_api.dtype_name(first.dtype), "") if first is not None else ""
        if peak in facts:
            shares.append((100 * rates["tflops"] / facts[peak], peak))
    if shares:
        percent, rates["peak_of"] = max(shares)
        rates["peak_percent"] = round(percent, 1)
    return rates
