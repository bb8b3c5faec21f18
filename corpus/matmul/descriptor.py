"""Persistent matrix product through tensor descriptors, made on the host and on the device."""

import functools

import triton
import triton.language as tl
from irdiff_corpus import empty, launch, tensor
from triton.tools.tensor_descriptor import TensorDescriptor

SINCE = "3.4.0"


@triton.jit
def _tile(tile_id, num_m, num_n, GROUP_M: tl.constexpr):
    group = tile_id // (GROUP_M * num_n)
    first_m = group * GROUP_M
    group_m = min(num_m - first_m, GROUP_M)
    return first_m + tile_id % group_m, (tile_id % (GROUP_M * num_n)) // group_m


@triton.jit
def host_descriptor_kernel(
    a_desc, b_desc, c_desc, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
    PROGRAMS: tl.constexpr, FLATTEN: tl.constexpr, WARP_SPECIALIZE: tl.constexpr,
):
    num_m = tl.cdiv(M, BLOCK_M)
    num_n = tl.cdiv(N, BLOCK_N)
    for tile_id in tl.range(
        tl.program_id(0), num_m * num_n, PROGRAMS, flatten=FLATTEN, warp_specialize=WARP_SPECIALIZE
    ):
        pid_m, pid_n = _tile(tile_id, num_m, num_n, GROUP_M)
        acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for k in range(tl.cdiv(K, BLOCK_K)):
            a = a_desc.load([pid_m * BLOCK_M, k * BLOCK_K])
            b = b_desc.load([pid_n * BLOCK_N, k * BLOCK_K])
            acc = tl.dot(a, b.T, acc)
        c_desc.store([pid_m * BLOCK_M, pid_n * BLOCK_N], acc.to(c_desc.dtype))


@triton.jit
def device_descriptor_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
    PROGRAMS: tl.constexpr,
):
    a_desc = tl.make_tensor_descriptor(a_ptr, shape=[M, K], strides=[K, 1], block_shape=[BLOCK_M, BLOCK_K])
    b_desc = tl.make_tensor_descriptor(b_ptr, shape=[N, K], strides=[K, 1], block_shape=[BLOCK_N, BLOCK_K])
    c_desc = tl.make_tensor_descriptor(c_ptr, shape=[M, N], strides=[N, 1], block_shape=[BLOCK_M, BLOCK_N])
    num_m = tl.cdiv(M, BLOCK_M)
    num_n = tl.cdiv(N, BLOCK_N)
    for tile_id in tl.range(tl.program_id(0), num_m * num_n, PROGRAMS, flatten=True):
        pid_m, pid_n = _tile(tile_id, num_m, num_n, GROUP_M)
        acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for k in range(tl.cdiv(K, BLOCK_K)):
            a = a_desc.load([pid_m * BLOCK_M, k * BLOCK_K])
            b = b_desc.load([pid_n * BLOCK_N, k * BLOCK_K])
            acc = tl.dot(a, b.T, acc)
        c_desc.store([pid_m * BLOCK_M, pid_n * BLOCK_N], acc.to(c_ptr.dtype.element_ty))


@functools.lru_cache  # asking the driver takes longer than the product
def _programs():
    return triton.runtime.driver.active.utils.get_device_properties(0)["multiprocessor_count"]


def host_descriptor(a, b, block=(128, 128, 64), warps=8, stages=3, flatten=True, warp_specialize=False):
    (m, k), n = a.shape, b.shape[0]
    c = empty((m, n), "fp16")
    programs = min(_programs(), triton.cdiv(m, block[0]) * triton.cdiv(n, block[1]))
    host_descriptor_kernel[(programs,)](
        TensorDescriptor(a, [m, k], [k, 1], [block[0], block[2]]),
        TensorDescriptor(b, [n, k], [k, 1], [block[1], block[2]]),
        TensorDescriptor(c, [m, n], [n, 1], [block[0], block[1]]),
        m, n, k, BLOCK_M=block[0], BLOCK_N=block[1], BLOCK_K=block[2], GROUP_M=8, PROGRAMS=programs,
        FLATTEN=flatten, WARP_SPECIALIZE=warp_specialize, num_warps=warps, num_stages=stages,
    )
    return c


def device_descriptor(a, b, block=(128, 128, 64), warps=8, stages=3):
    (m, k), n = a.shape, b.shape[0]
    c = empty((m, n), "fp16")
    triton.set_allocator(lambda size, alignment, stream: empty((size,), "i8"))
    programs = min(_programs(), triton.cdiv(m, block[0]) * triton.cdiv(n, block[1]))
    device_descriptor_kernel[(programs,)](
        a, b, c, m, n, k, BLOCK_M=block[0], BLOCK_N=block[1], BLOCK_K=block[2], GROUP_M=8, PROGRAMS=programs,
        num_warps=warps, num_stages=stages,
    )
    return c


def reference(a, b, **_):
    return a.float() @ b.float().T


def row(function, dtype, m, n, k, size, **facts):
    facts.setdefault("atol", 0.1)
    return launch(
        function, tensor((m, k), dtype), tensor((n, k), dtype), flops=2 * m * n * k,
        min_bytes=(m * k + k * n) * size + 2 * m * n, reference=reference, **facts,
    )


# Hopper adds 8-bit products up in fewer bits than fp32 has: their tolerance is wider.
LAUNCHES = {
    "host-fp16-4096": row(host_descriptor, "fp16", 4096, 4096, 4096, 2, tier="gate"),
    "host-bf16-8192x1024": row(host_descriptor, "bf16", 8192, 1024, 4096, 2, stages=4, warps=4),
    "host-fp8-4096": row(
        host_descriptor, "fp8e4nv", 4096, 4096, 4096, 1, atol=2.0
    ),
    "host-specialized-fp16-4096": row(
        host_descriptor, "fp16", 4096, 4096, 4096, 2, flatten=False, warp_specialize=True, warps=4,
        failing={"sm_100": "3.6.0"},
        targets=("sm_100", "gfx*"),  # on sm_90 the compiler splits the rows of the tile and then fails to verify
    ),
    "host-specialized64-fp16-4096": row(
        host_descriptor, "fp16", 4096, 4096, 4096, 2, block=(64, 128, 64), flatten=False, warp_specialize=True, warps=4,
        failing={"sm_100": "3.6.0"},
    ),
    "host-specialized64-bf16-2048": row(
        host_descriptor, "bf16", 2048, 2048, 2048, 2, block=(64, 128, 64), flatten=False, warp_specialize=True, warps=4,
        failing={"sm_100": "3.6.0"},
    ),
    "host-specialized64-fp16-tall": row(
        host_descriptor, "fp16", 8192, 2048, 1024, 2, block=(64, 128, 64), flatten=False, warp_specialize=True, warps=4,
        failing={"sm_100": "3.6.0"},
    ),
    "device-fp16-4096": row(device_descriptor, "fp16", 4096, 4096, 4096, 2, tier="gate"),
    "device-fp8-4096": row(
        device_descriptor, "fp8e4nv", 4096, 4096, 4096, 1, atol=2.0
    ),
}
