"""The HIP device against a library that records its calls (no AMD hardware is at hand)."""

import ctypes

import pytest

from irdiff.timing.abi import LaunchPlan, Parameter, TensorMap
from irdiff.timing.open_device import DeviceError, HipDevice, ParameterBlock

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


def test_what_amd_gpus_do_not_have_is_refused():
    made, device = plan(cluster=2), HipDevice(0, FakeHip())
    with pytest.raises(DeviceError, match="clusters"):
        device.launch(device.load(b"\x7fELF", made), made, ParameterBlock(made, CONTENTS), 99)
    sizes = {"element_type": 6, "element_bytes": 2, "swizzle": 3, "block_shape": (16, 64)}
    with pytest.raises(DeviceError, match="no CUtensorMap"):
        device.tensor_map(TensorMap(**sizes, shape=(32, 128), strides=(128, 1)), 4096)
