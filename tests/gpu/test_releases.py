"""Binaries of releases 3.2 to 3.9 on a real GPU: arguments, scratch, clusters and descriptors arrive."""

import pytest

from irdiff.backends import launch_plan
from irdiff.backends.launch_plan import read_entry
from irdiff.timing import buffers
from irdiff.timing.open_device import open_device
from tests.unit.timing.test_abi import named, read

pytestmark = pytest.mark.gpu
FILES = named("-sm_90-")


@pytest.fixture(scope="module")
def torch():
    module = pytest.importorskip("torch", reason="no torch here")
    if not module.cuda.is_available() or module.cuda.get_device_capability() != (9, 0):
        pytest.skip("no sm_90 GPU here")
    return module


def launched(torch, name):
    """(input, output) after one launch, as tensors of the captured shapes."""
    row, launch, binary = read(name)
    entry = read_entry(binary, row["metadata"]["name"], "cuda")
    plan = launch_plan.plan(launch, row["metadata"], entry, backend="cuda", warp_size=32)
    device = open_device(0)
    function = device.load(binary, plan)
    needed = buffers.storages(torch, [launch])
    memory = buffers.Buffers(buffers.Inputs(torch, needed, 3))
    block = buffers.parameter_block(device, plan, memory, buffers.scratch(torch, plan))
    device.launch(function, plan, block, torch.cuda.current_stream().cuda_stream)
    torch.cuda.synchronize()
    assert memory.overwritten() == []
    views = [
        memory.body(storage.number)
        .view(buffers.torch_dtype(torch, storage.dtype))
        .view(storage.argument["shape"])
        for storage in needed
    ]
    return views[0], views[1]


@pytest.mark.parametrize(
    "name", [name for name in FILES if name.endswith(("-mixed.json.zst", "-cluster.json.zst"))]
)
def test_scalars_and_clusters(torch, name):
    x, out = launched(torch, name)
    assert torch.equal(out, x * 0.5)


@pytest.mark.parametrize("name", [name for name in FILES if "-sm_90-descriptor." in name])
def test_host_descriptors(torch, name):
    x, out = launched(torch, name)
    assert torch.equal(out[16:], x[16:])
    assert not out[:16].any()


@pytest.mark.parametrize("name", [name for name in FILES if "-sm_90-device-descriptor." in name])
def test_global_scratch(torch, name):
    x, out = launched(torch, name)
    assert torch.equal(out[:16], x[:16])
    assert not out[16:].any()
