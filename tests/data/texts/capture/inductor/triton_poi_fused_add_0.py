import triton
import triton.language as tl
from torch._inductor.runtime import triton_heuristics


@triton_heuristics.heuristic(filename=__file__)
@triton.jit
def triton_poi_fused_add_0(in_ptr0, out_ptr0, xnumel, XBLOCK: tl.constexpr):
    offsets = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)
    tl.store(out_ptr0 + offsets, tl.load(in_ptr0 + offsets, mask=offsets < xnumel) + 1, mask=offsets < xnumel)
