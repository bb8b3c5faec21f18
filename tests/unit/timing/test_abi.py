"""The launch ABI on real binaries of releases 3.2 to 3.9 (made by tests/data/abi/make.py), and the HIP device against a
library that records its calls (no AMD hardware is at hand).
"""

import base64
import ctypes
import dataclasses
import json
import struct
from pathlib import Path
from types import SimpleNamespace

import pytest
import zstandard
from pydantic import TypeAdapter

from irdiff.backends import gpus, launch_plan
from irdiff.backends.amd.driver import HipDevice
from irdiff.backends.device import DeviceError, ParameterBlock
from irdiff.backends.kernel_entry import EntryParameter, KernelEntry
from irdiff.backends.launch_plan import (
    AbiError,
    LaunchPlan,
    Parameter,
    TensorMap,
    read_entry,
)
from irdiff.model import Launch
from tests.unit.golden import recorded

DATA = Path(__file__).parents[2] / "data" / "abi"
UNRECORDED = {"launched": {"stage": "launch", "digest": "0" * 64, "size_bytes": 0}, "places": [1]}
"""What launches lack that were recorded before there was a stage `launch`; no parameter depends on it."""
FILES = sorted(path.name for path in DATA.glob("*.zst"))
MIXED = "3.9.0-sm_90-mixed.json.zst"


def read(name):
    row = json.loads(zstandard.ZstdDecompressor().decompress((DATA / name).read_bytes()))
    launch = TypeAdapter(Launch).validate_python(UNRECORDED | row["launch"])
    return row, launch, base64.b85decode(row["binary"])


def planned(name):
    row, launch, binary = read(name)
    backend, warp = ("cuda", 32) if row["target"].startswith("sm_") else ("hip", 64)
    entry = read_entry(binary, row["metadata"]["name"], backend)
    return launch_plan.plan(launch, row["metadata"], entry, backend=backend, warp_size=warp), row, launch


def named(part):
    return [name for name in FILES if part in name]


def told(parameter):
    value = "" if parameter.value is None else f" = {parameter.value.hex()}"
    tensor_map = f" {parameter.tensor_map}" if parameter.tensor_map else ""
    return f"    {parameter.name}: {parameter.size_bytes} at {parameter.offset_bytes}{value}{tensor_map}"


def test_the_launch_of_every_release_fits_the_entry():
    """Scalars are packed by their type, descriptors become tensor maps, and scratch pointers follow."""
    said = []
    for name in FILES:
        plan, _, _ = planned(name)
        offsets = [parameter.offset_bytes for parameter in plan.parameters]
        assert offsets == sorted(offsets)
        shape = f"grid {plan.grid}, cluster {plan.cluster}, {plan.block_threads} threads"
        said += [f"{name}: {shape}, scratch {plan.scratch_bytes}", *map(told, plan.parameters)]
    recorded("abi.txt", "\n".join([*said, ""]))


SIX = [EntryParameter(offset_bytes=8 * i, size_bytes=size) for i, size in enumerate([8, 4, 8, 1, 4, 8])]
WITHOUT_SCRATCH = KernelEntry(name="mixed", parameters=tuple(SIX), required_threads=None)


def test_what_does_not_fit_the_entry_is_an_error_before_launch():
    row, launch, binary = read(MIXED)
    whole = read_entry(binary, "mixed", "cuda")
    for signature, metadata, entry, pattern in (
        ({"n": None, "wide": None, "scale": None}, {}, whole, "the entry takes 8 parameters"),
        ({"n": "i64"}, {}, whole, "not launched"),
        ({}, {"num_warps": 8}, whole, "wants 128 threads"),
        ({}, {"global_scratch_size": 64}, WITHOUT_SCRATCH, "needs global scratch"),
    ):
        types = {name: type_ for name, type_ in (launch.signature | signature).items() if type_}
        odd = dataclasses.replace(launch, signature=types)
        with pytest.raises(AbiError, match=pattern):
            launch_plan.plan(odd, row["metadata"] | metadata, entry, backend="cuda", warp_size=32)


def test_pack_scalar():
    for type_, value, packed in (
        *(("i32", -1, "ffffffff"), ("i32", 1 << 31, "00000080"), ("u64", (1 << 64) - 1, "ff" * 8)),
        *(("fp16", 1.5, "003e"), ("bf16", 1.0, "803f"), ("fp32", "inf", "0000807f")),
        ("fp64", 0.1, struct.pack("<d", 0.1).hex()),
    ):
        assert launch_plan.pack_scalar(type_, value).hex() == packed, type_


CONTENTS = [b"\1" * 8, b"\2" * 4, b"\3" * 8]


class FakeHip:
    def __init__(self, fail=None):
        self.calls, self.fail, self.seen = [], fail, None

    def __getattr__(self, name):
        def call(*args):
            self.calls.append((name, *args))
            if name.startswith("hipModuleLaunch"):
                pointers = ctypes.cast(args[9], ctypes.POINTER(ctypes.c_void_p))
                self.seen = [ctypes.string_at(pointers[i], len(part)) for i, part in enumerate(CONTENTS)]
            if name == self.fail:
                return (719,)
            values = {"hipModuleLoadData": "module", "hipModuleGetFunction": "function"}
            values["hipDriverGetVersion"] = 7
            return (0, values[name]) if name in values else (0,)

        return call


def plan(**changes):
    facts = {
        "kernel": "k", "grid": (7, 2, 1), "block_threads": 256, "cluster": 1, "shared_bytes": 1024,
        "cooperative": False, "programmatic": False, "size_bytes": 24, "scratch_bytes": {},
        "parameters": tuple(
            Parameter(name=f"p{i}", size_bytes=len(part), offset_bytes=8 * i) for i, part in enumerate(CONTENTS)
        ),
    }  # fmt: skip
    return LaunchPlan(**(facts | changes))


def test_loading_and_launching():
    for cooperative, name in ((False, "hipModuleLaunchKernel"), (True, "hipModuleLaunchCooperativeKernel")):
        api, made = FakeHip(), plan(cooperative=cooperative)
        device = HipDevice(1, api)
        device.launch(device.load(b"\x7fELF", made), made, ParameterBlock(made, CONTENTS), 99)
        assert api.calls[-1][:10] == (name, "function", 7, 2, 1, 256, 1, 1, 1024, 99)
        assert api.seen == CONTENTS
    for call in ("hipSetDevice", "hipModuleLoadData", "hipModuleGetFunction"):
        with pytest.raises(DeviceError, match="refused"):
            HipDevice(0, FakeHip(fail=call)).load(b"", plan())


@pytest.mark.parametrize(
    ("version", "properties", "target", "uuid"),
    [
        ({"cuda": "13.0", "hip": None}, {"major": 9, "minor": 0, "uuid": "1-2"}, "sm_90", "GPU-1-2"),
        ({"cuda": None, "hip": "7.0"}, {"gcnArchName": "gfx942:sramecc+", "uuid": "34"}, "gfx942", "34"),
    ],
)
def test_a_gpu_is_named_by_the_driver_that_torch_was_built_for(version, properties, target, uuid):
    driver = gpus.driver(SimpleNamespace(version=SimpleNamespace(**version)))
    seen = SimpleNamespace(**properties)
    assert (driver.target(seen), driver.uuid(seen)) == (target, uuid)


def test_what_amd_gpus_do_not_have_is_refused():
    made, device = plan(cluster=2), HipDevice(0, FakeHip())
    with pytest.raises(DeviceError, match="clusters"):
        device.launch(device.load(b"\x7fELF", made), made, ParameterBlock(made, CONTENTS), 99)
    sizes = {"element_type": 6, "element_bytes": 2, "swizzle": 3, "block_shape": (16, 64)}
    with pytest.raises(DeviceError, match="no CUtensorMap"):
        device.tensor_map(TensorMap(**sizes, shape=(32, 128), strides=(128, 1)), 4096)


@pytest.mark.parametrize(
    ("type_", "value", "bits"),
    [
        ("fp32", 1e39, "0000807f"),
        ("f32", -1e300, "000080ff"),
        ("bf16", 1e39, "807f"),
        ("fp32", 1.5, "0000c03f"),
    ],
)
def test_a_number_that_is_too_large_for_its_type_is_infinite(type_, value, bits):
    assert launch_plan.pack_scalar(type_, value).hex() == bits


@pytest.mark.parametrize("grid", [(-1, 1, 1), (4, -3, 1), (1 << 32, 1, 1)])
def test_a_grid_that_no_driver_takes(grid):
    row, launch, binary = read(MIXED)
    entry = read_entry(binary, row["metadata"]["name"], "cuda")
    launch = dataclasses.replace(launch, grid=grid)
    with pytest.raises(AbiError, match="no driver launches a grid"):
        launch_plan.plan(launch, row["metadata"], entry, backend="cuda", warp_size=32)
