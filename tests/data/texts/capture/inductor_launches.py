"""Launches a kernel as Inductor does, of which this process has the file only."""

import os

import triton
from torch._inductor.runtime import triton_heuristics
from train import Array

written = os.path.join(os.path.dirname(os.path.abspath(__file__)), "inductor", "triton_poi_fused_add_0.py")
tuner = triton_heuristics.CachingAutotuner(
    triton_heuristics.compiled_elsewhere("triton_poi_fused_add_0"), written, {}
)
x, out = Array((1, 1000), "fp32"), Array((1, 1000), "fp32")
tuner.run(x, out, 1000, stream=0)
tuner.run(x, out, 1000, stream=0)
tuner.run(x, out, 1000, stream=0, benchmark_run=True)
assert triton.launched == [("inductor", 8, 1000)] * 3
assert out.contents == "written"
