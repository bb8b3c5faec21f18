"""SwiGLU and GeGLU, forward and backward: the gate of a feed-forward layer."""

import triton
import triton.language as tl
from irdiff_corpus import empty, launch, tensor


@triton.jit
def swiglu_kernel(gate_ptr, up_ptr, out_ptr, stride_in, stride_out, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    inside = cols < n_cols
    gate = tl.load(gate_ptr + row * stride_in + cols, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(up_ptr + row * stride_in + cols, mask=inside, other=0.0)
    out = (gate * tl.sigmoid(gate)).to(up.dtype) * up
    tl.store(out_ptr + row * stride_out + cols, out, mask=inside)


@triton.jit
def swiglu_backward_kernel(dout_ptr, gate_ptr, up_ptr, dgate_ptr, dup_ptr, stride, n_cols, BLOCK: tl.constexpr):
    where = tl.program_id(0).to(tl.int64) * stride + tl.arange(0, BLOCK)
    inside = tl.arange(0, BLOCK) < n_cols
    dout = tl.load(dout_ptr + where, mask=inside, other=0.0).to(tl.float32)
    gate = tl.load(gate_ptr + where, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(up_ptr + where, mask=inside, other=0.0).to(tl.float32)
    sigmoid = tl.sigmoid(gate)
    silu = gate * sigmoid
    dgate = dout * up * (silu * (1 - sigmoid) + sigmoid)
    tl.store(dgate_ptr + where, dgate.to(dgate_ptr.dtype.element_ty), mask=inside)
    tl.store(dup_ptr + where, (dout * silu).to(dup_ptr.dtype.element_ty), mask=inside)


@triton.jit
def _tanh(x):
    return 1 - 2 / (tl.exp(2 * x) + 1)


@triton.jit
def geglu_kernel(gate_ptr, up_ptr, out_ptr, stride_in, stride_out, n_cols, TANH: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = cols < n_cols
    gate = tl.load(gate_ptr + row * stride_in + cols, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(up_ptr + row * stride_in + cols, mask=inside, other=0.0).to(tl.float32)
    if TANH:
        half = 0.5 * gate * (1 + _tanh(0.7978845608028654 * (gate + 0.044715 * gate * gate * gate)))
    else:
        half = 0.5 * gate * (1 + tl.math.erf(gate * 0.7071067811865476))
    tl.store(out_ptr + row * stride_out + cols, (half * up).to(out_ptr.dtype.element_ty), mask=inside)


def swiglu(gate, up, warps=8):
    rows, cols = gate.shape
    out = empty(gate.shape, gate.dtype)
    swiglu_kernel[(rows,)](
        gate, up, out, gate.stride(0), out.stride(0), cols, BLOCK=triton.next_power_of_2(cols), num_warps=warps
    )
    return out


def swiglu_backward(dout, gate, up, warps=8):
    rows, cols = gate.shape
    dgate, dup = empty(gate.shape, gate.dtype), empty(gate.shape, gate.dtype)
    swiglu_backward_kernel[(rows,)](
        dout, gate, up, dgate, dup, gate.stride(0), cols, BLOCK=triton.next_power_of_2(cols), num_warps=warps
    )
    return dgate, dup


def geglu(gate, up, tanh=True, block=2048):
    rows, cols = gate.shape
    out = empty(gate.shape, gate.dtype)
    geglu_kernel[(rows, triton.cdiv(cols, block))](
        gate, up, out, gate.stride(0), out.stride(0), cols, TANH=tanh, BLOCK=block
    )
    return out


def swiglu_reference(gate, up, warps=8):
    gate = gate.float()
    return gate * gate.sigmoid() * up.float()


def backward_reference(dout, gate, up, warps=8):
    dout, gate, up = dout.float(), gate.float(), up.float()
    sigmoid = gate.sigmoid()
    return dout * up * sigmoid * (1 + gate * (1 - sigmoid)), dout * gate * sigmoid


def geglu_reference(gate, up, tanh=True, block=2048):
    gate = gate.float()
    if tanh:
        return 0.5 * gate * (1 + (0.7978845608028654 * (gate + 0.044715 * gate**3)).tanh()) * up.float()
    return 0.5 * gate * (1 + (gate * 0.7071067811865476).erf()) * up.float()


def row(function, reference, inputs, dtype, rows, cols, packed=False, **facts):
    if packed:  # gate and up are halves of one projection
        both = tensor((rows, 2 * cols), dtype)
        args = both[:, :cols], both[:, cols:]
    else:
        args = [tensor((rows, cols), dtype) for _ in range(inputs)]
    return launch(
        function, *args, flops=5 * inputs * rows * cols, min_bytes=2 * rows * cols * (inputs + max(1, inputs - 1)),
        reference=reference, rtol=2e-2, atol=2e-2, **facts,
    )


LAUNCHES = {
    "swiglu-bf16-14336": row(swiglu, swiglu_reference, 2, "bf16", 2048, 14336, warps=16, tier="gate"),
    "swiglu-fp16-packed-11008": row(swiglu, swiglu_reference, 2, "fp16", 2048, 11008, packed=True, warps=16),
    "swiglu-backward-bf16-8192": row(swiglu_backward, backward_reference, 3, "bf16", 2048, 8192, warps=16),
    "geglu-tanh-bf16-8192": row(geglu, geglu_reference, 2, "bf16", 4096, 8192),
    "geglu-erf-fp16-8192": row(geglu, geglu_reference, 2, "fp16", 4096, 8192, tanh=False),
}
