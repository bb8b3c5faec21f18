import multiprocessing
import multiprocessing.popen_spawn_posix  # so no test imports it
import os
import re
import subprocess
import sys
import threading

import numpy as np
import pytest
import torch
import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


@triton.jit
def scale(x, out, factor, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i) * factor)


@triton.jit
def wrong(x):
    tl.static_assert(False, "never")


@triton.jit
def sliced(x):
    x[10:]


FILL = """
tt.func public @fill(%out: !tt.ptr<f32>) {
  %one = arith.constant 1.0 : f32
  tt.store %out, %one : !tt.ptr<f32>
  tt.return
}
"""


def launch_add(n=1000, dtype=torch.float32):
    x, y = (torch.randn(n, device="cuda").to(dtype) for _ in range(2))
    out = torch.empty_like(x)
    return x + y, out, add[(triton.cdiv(n, 256),)](x, y, out, n, BLOCK=256)


def launch_scale():
    x = torch.ones(256, device="cuda")
    out = torch.empty_like(x)
    scale[(1,)](x, out, 2.0, BLOCK=256)
    return out


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_add(dtype):
    expected, out, _ = launch_add(dtype=dtype)
    torch.testing.assert_close(out, expected)
    np.testing.assert_allclose(out.cpu().numpy(), expected.cpu().numpy())
    assert torch.equal(out, expected)
    assert (out == expected).all().item()
    assert not (out != expected).any(), "elements differ"
    assert np.abs(out.numpy() - expected.numpy()).max() < 1e-3


def test_scale():
    assert launch_scale()[0] == 2


def test_reads_before_a_launch():
    if torch.ones(2, device="cuda").sum().item() == 2:
        launch_scale()


def test_reads_a_value():
    if launch_scale()[0] == 2:
        launch_add()


def test_reads_an_array():
    if np.all(launch_scale().cpu().numpy() * 2 == 4):
        launch_add()


def test_reads_what_no_kernel_reaches():
    launch_scale()
    bits = torch.log2(torch.tensor(32.0, device="cuda"))
    table = torch.arange(8, device="cuda")
    table[2:4] = bits.to(table.dtype)
    if int(bits) == 5 and table[torch.tensor([2, 3])].tolist() == [5, 5]:
        launch_add()


def into_new(out):
    new = torch.zeros(256, device="cuda")
    return new, out


def assigned(out):
    new, out = into_new(out)
    new[1:] = out[1:]
    return new


def added(out):
    new, out = into_new(out)
    torch._foreach_add_([new], [out])
    return new


def through_numpy(out):
    new, out = into_new(out)
    np.copyto(new.numpy(), np.asarray(out.cpu().numpy()))
    return new


def of_numpy(out):
    return torch.from_numpy(np.asarray(out.cpu().numpy()))


def launched_again(_):
    new = torch.zeros(256, device="cuda")
    scale[(1,)](new, new, 2.0, BLOCK=256)
    return new


def differentiated(out):
    weight = torch.ones(256, device="cuda", requires_grad=True)
    (weight * out).sum().backward()
    return weight.grad


HIDDEN = [assigned, added, through_numpy, of_numpy, launched_again, differentiated]


@pytest.mark.parametrize("hide", HIDDEN)
def test_reads_what_a_kernel_reaches(hide):
    if hide(launch_scale())[2].item() == 2:
        launch_add()


@pytest.mark.parametrize("read", [lambda out: 2 in out, lambda out: torch.where(out)[0].numel() == 256])
def test_reads_without_a_name(read):
    if read(launch_scale()):
        launch_add()


def test_reads_code():
    _, _, kernel = launch_add()
    ptx = kernel.asm["ptx"]
    assert ".target sm_90" in ptx
    if "ld.global" in ptx:
        launch_scale()


def test_asserts_on_code():
    _, _, kernel = launch_add()
    ptx = kernel.asm["ptx"]
    assert ".target sm_90" in ptx
    assert re.search(r"ld\.global", kernel.asm["ptx"])
    launch_scale()


def test_asserts_on_a_part_of_code():
    _, _, kernel = launch_add()
    assert re.search(r"\.target (\w+)", kernel.asm["ptx"]).group(1) == "sm_90"
    launch_scale()


def test_reads_figures():
    _, _, kernel = launch_add()
    assert kernel.n_regs < 255


def test_launches_a_kernel_again():
    x = torch.ones(256, device="cuda")
    kernel = scale.warmup(x, x, 2.0, BLOCK=256, grid=(1,))
    for _ in range(3):
        kernel[(1, 1, 1)](x, x, 2.0, 256)


def test_expects_an_error():
    for kernel in (wrong, sliced):
        with pytest.raises(triton.CompilationError):
            kernel[(1,)](torch.empty(1, device="cuda"))
    launch_scale()


def test_launches_a_file_of_ir(tmp_path):
    path = tmp_path / "fill.ttir"
    path.write_text(FILL)
    kernel = triton.compile(str(path))
    kernel[(1, 1, 1)](torch.empty(1, device="cuda"))
    assert "st.global" in kernel.asm["ptx"]


def test_overrides_a_stage(tmp_path):
    path = tmp_path / "fill.ttir"
    path.write_text(FILL)
    x = torch.ones(256, device="cuda")
    scale[(1,)](x, x, 3.0, BLOCK=256, ir_override=str(path))


def test_expects_an_error_of_a_file(tmp_path):
    path = tmp_path / "fill.ttir"
    path.write_text(FILL.replace("tt.store", "tt.stored"))
    with pytest.raises(RuntimeError):
        triton.compile(str(path))
    launch_scale()


def test_compiles_for_another_gpu():
    types = {"x": "*fp32", "out": "*fp32", "factor": "fp32", "BLOCK": "constexpr"}
    source = triton.compiler.ASTSource(scale, types, {"BLOCK": 256})
    triton.compile(source, target=triton.backends.compiler.GPUTarget("cuda", 80, 32))


def test_sets_a_variable(monkeypatch):
    monkeypatch.setenv("DISABLE_LLVM_OPT", "1")
    launch_scale()


def test_starts_python():
    launch_scale()
    subprocess.run([sys.executable, "-c", "pass"], check=True)


@pytest.mark.parametrize("number", [1, 2])
def test_spawns_python(number):
    launch_scale()
    multiprocessing.get_context("spawn").Process(target=print).start()


def test_fails():
    launch_scale()
    raise RuntimeError("no such thing")


def test_is_skipped():
    pytest.skip("not here")


def test_ends_its_process():
    launch_scale()
    os._exit(3)


def test_waits_for_nothing():
    launch_scale()
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


def test_after_that():
    launch_scale()
