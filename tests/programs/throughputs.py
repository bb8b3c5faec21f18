"""Throughputs of one multiprocessor, measured: `python -m tests.programs.throughputs PTXAS`, on a GPU of sm_90.

Prints a line for each fact of `targets/sm_90.toml` that irdiff's cost model divides by. A kernel is one instruction in
independent chains, 32 warps a multiprocessor, timed with the multiprocessor's own clock; the bytes of the memory are timed
with events. `python -m tests.programs.throughputs PTXAS FOLDER` writes the PTX and what ptxas makes of it, without a GPU.

The standard library, ptxas and a driver are enough.
"""

import ctypes
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

_LOOPS = 64
_UNROLLED = 16
_CHAINS = 4
_LANES = 32
_REPEATS = 5
_MEMORY_BYTES = 4 << 30
_CACHED_BYTES = 8 << 20


@dataclass(frozen=True)
class Body:
    """One instruction, `{n}` being the number of its chain, and what one warp's execution of it gives."""

    fact: str
    registers: str
    begin: str
    step: str
    result: str
    """A 32-bit register that depends on each chain `{n}`."""
    each: float
    warps: int = 32
    shared: int = 0


_INT = ".reg .u32 a{n}, b{n};"
_FLOAT = ".reg .f32 f{n};"
_MMA = ".reg .f32 d{n}_<4>; .reg .b32 a{n};"
_MMA_BEGIN = "mov.u32 a{n}, %laneid; " + " ".join(f"mov.f32 d{{n}}_{i}, 0f00000000;" for i in range(4))
_D4 = "{{" + ", ".join(f"d{{n}}_{i}" for i in range(4)) + "}}"
_ACCUMULATORS = 128
_D128 = "{{" + ", ".join(f"w{{n}}_{i}" for i in range(_ACCUMULATORS)) + "}}"
BODIES = (
    Body("fp32_per_cycle", _FLOAT, "cvt.rn.f32.u32 f{n}, thread;", "fma.rn.f32 f{n}, f{n}, scale, scale;",
         "cvt.rzi.u32.f32 out, f{n};", _LANES),
    Body("integer_per_cycle", _INT, "add.u32 a{n}, thread, {n};", "add.u32 a{n}, a{n}, a{m};", "mov.u32 out, a{n};", _LANES),
    Body("integer_per_cycle (multiply-add)", _INT, "add.u32 a{n}, thread, {n};", "mad.lo.u32 a{n}, a{n}, a{m}, seed;",
         "mov.u32 out, a{n};", _LANES),
    Body("integer_per_cycle (shift)", _INT, "add.u32 a{n}, thread, {n};", "shf.l.wrap.b32 a{n}, a{n}, seed, 7;",
         "mov.u32 out, a{n};", _LANES),
    Body("integer_per_cycle (logic)", _INT, "add.u32 a{n}, thread, {n};", "lop3.b32 a{n}, a{n}, a{m}, seed, 0x96;",
         "mov.u32 out, a{n};", _LANES),
    Body("special_per_cycle", _FLOAT, "cvt.rn.f32.u32 f{n}, thread;", "ex2.approx.ftz.f32 f{n}, f{n};",
         "cvt.rzi.u32.f32 out, f{n};", _LANES),
    Body("special_per_cycle (count of bits)", _INT, "add.u32 a{n}, thread, {n};", "popc.b32 a{n}, a{n};",
         "mov.u32 out, a{n};", _LANES),
    Body("fp64_per_cycle", ".reg .f64 g{n};", "cvt.rn.f64.u32 g{n}, thread;", "fma.rn.f64 g{n}, g{n}, wide, wide;",
         "cvt.rzi.u32.f64 out, g{n};", _LANES),
    Body("shuffles a cycle, in lanes", _INT, "add.u32 a{n}, thread, {n};",
         "shfl.sync.bfly.b32 a{n}, a{n}, 1, 31, 0xffffffff;", "mov.u32 out, a{n};", _LANES),
    Body("shared_bytes_per_cycle", _INT, "shl.b32 a{n}, thread, 2; add.u32 a{n}, a{n}, tile; st.shared.u32 [a{n}], a{n};",
         "ld.shared.u32 a{n}, [a{n}];", "mov.u32 out, a{n};", 4 * _LANES, shared=4096),
    Body("warp_matrix_fmas_per_cycle", _MMA, _MMA_BEGIN,
         f"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {_D4}, {{{{a{{n}}, a{{n}}, a{{n}}, a{{n}}}}}}, {{{{a{{n}}, a{{n}}}}}}, {_D4};",
         "cvt.rzi.u32.f32 out, d{n}_0;", 16 * 8 * 16),
)  # fmt: skip


def kernel(body: Body) -> str:
    chains = range(_CHAINS)

    def each(text: str) -> str:
        return "\n  ".join(text.format(n=n, m=(n + 1) % _CHAINS) for n in chains)

    steps = "\n  ".join(each(body.step) for _ in range(_UNROLLED))
    results = "\n  ".join(f"{body.result.format(n=n)} xor.b32 sum, sum, out;" for n in chains)
    return _around(each(body.registers), each(body.begin), steps, results, body.shared or 16)


def _around(registers: str, begin: str, steps: str, results: str, shared: int) -> str:
    return f"""
.version 8.5
.target sm_90a
.address_size 64
.visible .entry measured(.param .u64 cycles, .param .u64 sums, .param .u32 given)
{{
  .reg .u64 where, start, end; .reg .u32 seed, thread, block, out, sum, tile, count; .reg .pred again, first;
  .reg .f32 scale; .reg .f64 wide;
  .shared .align 1024 .b8 tile_bytes[{shared}];
  {registers}
  ld.param.u32 seed, [given];
  mov.u32 thread, %tid.x; mov.u32 block, %ctaid.x; mov.u32 sum, 0; mov.u32 tile, tile_bytes;
  cvt.rn.f32.u32 scale, seed; cvt.rn.f64.u32 wide, seed;
  {begin}
  mov.u32 count, {_LOOPS};
  bar.sync 0;
  mov.u64 start, %clock64;
REPEAT:
  {steps}
  add.u32 count, count, -1;
  setp.ne.u32 again, count, 0;
  @again bra REPEAT;
  bar.sync 0;
  mov.u64 end, %clock64;
  {results}
  sub.u64 end, end, start;
  ld.param.u64 where, [cycles];
  mad.wide.u32 where, block, 8, where;
  setp.eq.u32 first, thread, 0;
  @first st.global.u64 [where], end;
  ld.param.u64 where, [sums];
  setp.eq.u32 first, sum, 0xfffffff1;
  @first st.global.u32 [where], sum;
  ret;
}}
"""


def group_matrix() -> str:
    """Two warp groups, each with two chains of m64n256k16 from shared memory that nobody wrote."""
    registers = f".reg .f32 w_<{_ACCUMULATORS}>; .reg .u64 left, right; .reg .b32 low;"
    begin = "\n  ".join(f"mov.f32 w_{i}, 0f00000000;" for i in range(_ACCUMULATORS))
    # swizzle of 128 bytes (1 << 62), a stride of 1,024 bytes, and the address, in units of 16 bytes
    begin += """
  shr.u32 low, tile, 4;
  cvt.u64.u32 left, low;
  or.b64 left, left, 0x4000004000000000;
  add.u64 right, left, 512;
  wgmma.fence.sync.aligned;"""
    names = ", ".join(f"w_{i}" for i in range(_ACCUMULATORS))
    one = f"wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {{{names}}}, left, right, 1, 1, 1, 0, 0;"
    steps = (
        "\n  ".join([one] * _UNROLLED)
        + "\n  wgmma.commit_group.sync.aligned;\n  wgmma.wait_group.sync.aligned 0;"
    )
    return _around(registers, begin, steps, "cvt.rzi.u32.f32 out, w_0; xor.b32 sum, sum, out;", 48 << 10)


def stream() -> str:
    """Each thread reads 16 bytes a step past L1, `step` bytes apart, of memory that `mask` bounds."""
    loads = "\n  ".join(
        f"add.u64 place, begin, offset; ld.global.cg.v4.u32 {{v{i}_0, v{i}_1, v{i}_2, v{i}_3}}, [place];"
        " add.u64 offset, offset, step; and.b64 offset, offset, mask;"
        for i in range(8)
    )
    sums = "\n  ".join(f"xor.b32 sum, sum, v{i}_{j};" for i in range(8) for j in range(4))
    registers = " ".join(f".reg .u32 v{i}_<4>;" for i in range(8))
    return f"""
.version 8.5
.target sm_90a
.address_size 64
.visible .entry measured(.param .u64 data, .param .u64 sums, .param .u64 given, .param .u32 loops)
{{
  .reg .u64 place, begin, offset, step, mask, where; .reg .u32 thread, block, blocks, threads, sum, count;
  .reg .pred again, first;
  {registers}
  mov.u32 thread, %tid.x; mov.u32 block, %ctaid.x; mov.u32 blocks, %nctaid.x; mov.u32 threads, %ntid.x;
  ld.param.u64 begin, [data]; ld.param.u64 mask, [given]; ld.param.u32 count, [loops]; mov.u32 sum, 0;
  mad.lo.u32 thread, block, threads, thread; mul.lo.u32 threads, threads, blocks;
  mul.wide.u32 step, threads, 16; mul.wide.u32 offset, thread, 16; and.b64 offset, offset, mask;
REPEAT:
  {loads}
  {sums}
  add.u32 count, count, -1;
  setp.ne.u32 again, count, 0;
  @again bra REPEAT;
  ld.param.u64 where, [sums];
  setp.eq.u32 first, sum, 0xfffffff1;
  @first st.global.u32 [where], sum;
  ret;
}}
"""


def assembled(text: str, ptxas: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        source, binary = Path(folder, "a.ptx"), Path(folder, "a.cubin")
        source.write_text(text)
        subprocess.run([ptxas, "-arch=sm_90a", "-o", binary, source], check=True)
        return binary.read_bytes()


class Gpu:
    def __init__(self) -> None:
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)
        name = ctypes.create_string_buffer(100)
        self.call("cuDeviceGetName", name, 100, device)
        self.name, count = name.value.decode(), ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(count), 16, device)
        self.multiprocessors = count.value

    def call(self, name: str, *arguments: object) -> None:
        if code := getattr(self.cuda, name)(*arguments):
            raise SystemExit(f"{name} failed: error {code} of the driver")

    def memory(self, size: int) -> ctypes.c_uint64:
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
        return address

    def launch(self, binary: bytes, blocks: int, threads: int, *arguments: object) -> float:
        """Milliseconds of the fastest of some launches."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), binary)
        self.call("cuModuleGetFunction", ctypes.byref(function), module, b"measured")
        passed = (ctypes.c_void_p * len(arguments))(*(ctypes.addressof(each) for each in arguments))
        begin, end, took = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_float()
        for event in (begin, end):
            self.call("cuEventCreate", ctypes.byref(event), 0)
        times = []
        for _ in range(_REPEATS):
            self.call("cuEventRecord", begin, None)
            self.call("cuLaunchKernel", function, blocks, 1, 1, threads, 1, 1, 0, None, passed, None)
            self.call("cuEventRecord", end, None)
            self.call("cuCtxSynchronize")
            self.call("cuEventElapsedTime", ctypes.byref(took), begin, end)
            times.append(took.value)
        return min(times)

    def cycles(self, binary: bytes, threads: int) -> float:
        """The median over the multiprocessors, one block on each."""
        size = 8 * self.multiprocessors
        cycles, sums, seed = self.memory(size), self.memory(64), ctypes.c_uint32(3)
        self.launch(binary, self.multiprocessors, threads, cycles, sums, seed)
        read = (ctypes.c_uint64 * self.multiprocessors)()
        self.call("cuMemcpyDtoH_v2", read, cycles, ctypes.c_size_t(size))
        return statistics.median(read)


def measure(ptxas: str) -> None:
    gpu = Gpu()
    print(gpu.name, gpu.multiprocessors, "multiprocessors")
    for body in BODIES:
        cycles = gpu.cycles(assembled(kernel(body), ptxas), body.warps * _LANES)
        executed = _LOOPS * _UNROLLED * _CHAINS * body.warps
        print(f"{body.fact}: {executed * body.each / cycles:.1f}")
    cycles = gpu.cycles(assembled(group_matrix(), ptxas), 256)
    print(f"matrix_fmas_per_cycle: {_LOOPS * _UNROLLED * 2 * 64 * 256 * 16 / cycles:.0f}")
    data, sums, text = gpu.memory(_MEMORY_BYTES), gpu.memory(64), assembled(stream(), ptxas)
    for name, size in (("memory", _MEMORY_BYTES), ("L2", _CACHED_BYTES)):
        a_loop = gpu.multiprocessors * 2048 * 16 * 8
        loops, mask = _MEMORY_BYTES // a_loop, ctypes.c_uint64(size - 1)
        took = gpu.launch(text, 2 * gpu.multiprocessors, 1024, data, sums, mask, ctypes.c_uint32(loops))
        per_second = loops * a_loop / took / 1e6
        print(
            f"{name}: {per_second / 1000:.2f} TB/s, {per_second / gpu.multiprocessors:.1f} GB/s a multiprocessor"
        )


def write(ptxas: str, folder: str) -> None:
    texts = {f"{n:02}-{body.fact.split()[0]}": kernel(body) for n, body in enumerate(BODIES)}
    texts |= {"wgmma": group_matrix(), "memory": stream()}
    for name, text in texts.items():
        Path(folder, f"{name}.ptx").write_text(text)
        Path(folder, f"{name}.cubin").write_bytes(assembled(text, ptxas))


if __name__ == "__main__":
    measure(*sys.argv[1:]) if len(sys.argv) == 2 else write(*sys.argv[1:])
