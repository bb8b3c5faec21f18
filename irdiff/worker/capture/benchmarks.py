"""Replaces Triton's benchmark functions if there is no GPU: the measured function runs once, and the time is
made up.
"""

from __future__ import annotations

import contextlib
import unittest.mock

import triton.testing

from . import noted

_MILLISECONDS = 1.0


@contextlib.contextmanager
def run_once():
    """While open, `do_bench` and `do_bench_cudagraph` of `triton.testing` call their function once."""
    with contextlib.ExitStack() as replaced:
        for name in ("do_bench", "do_bench_cudagraph"):
            if hasattr(triton.testing, name):
                replaced.enter_context(unittest.mock.patch.object(triton.testing, name, _once))
        yield


def _once(fn, *_, quantiles=None, return_mode="mean", **__):
    fn()
    noted.caveat(f"measures with do_bench: {_MILLISECONDS} ms is made up, and the function ran once")
    if quantiles:
        return [_MILLISECONDS] * len(quantiles) if len(quantiles) > 1 else _MILLISECONDS
    return [_MILLISECONDS] if return_mode == "all" else _MILLISECONDS
