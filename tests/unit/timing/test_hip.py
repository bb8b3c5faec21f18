"""The HIP device against a library that records its calls (no AMD hardware is at hand)."""

import ctypes

import pytest

from irdiff.timing.abi import LaunchPlan, Parameter, ParameterKind, TensorMap
from irdiff.timing.open_device import DeviceError, HipDevice, ParameterBlock


class FakeHip:
    def __init__(self, fail=None):
        self.calls = []
        self.fail = fail
        self.seen = None

    def __getattr__(self, name):
        def call(*args):
            self.calls.append((name, *args))
            if name.startswith("hipModuleLaunch"):
                pointers = ctypes.cast(args[9], ctypes.POINTER(ctypes.c_void_p))
                self.seen = [ctypes.string_at(pointers[i], size) for i, size in enumerate(self.sizes)]
            if name == self.fail:
                return (719,)
            value = {"hipModuleLoadData": "module", "hipModuleGetFunction": "function"}.get(name)
            return (0,) if value is None else (0, value)

        return call


def plan(**changes):
    sizes = [8, 4, 8]
    offsets = [0, 8, 16]
    parameters = tuple(
        Parameter(
            kind=ParameterKind.SCALAR, name=f"p{i}", size_bytes=size, offset_bytes=offset,
        )
        for i, (size, offset) in enumerate(zip(sizes, offsets, strict=True))
    )  # fmt: skip
    facts = {
        "kernel": "k", "grid": (7, 2, 1), "block_threads": 256, "cluster": 1, "shared_bytes": 1024,
        "cooperative": False, "programmatic": False, "parameters": parameters, "size_bytes": 24,
        "global_scratch_bytes": 0, "profile_scratch_bytes": 0,
    }  # fmt: skip
    return LaunchPlan(**(facts | changes))


CONTENTS = {0: b"\1" * 8, 1: b"\2" * 4, 2: b"\3" * 8}


def launched(**changes):
    api = FakeHip()
    api.sizes = [8, 4, 8]
    device = HipDevice(1, api)
    made = plan(**changes)
    function = device.load(b"\x7fELF", made)
    device.launch(function, made, ParameterBlock(made, CONTENTS), 99)
    return api


def test_loading_and_launching():
    api = launched()
    assert api.calls[0] == ("hipSetDevice", 1)
    assert api.calls[1] == ("hipModuleLoadData", b"\x7fELF")
    assert api.calls[2] == ("hipModuleGetFunction", "module", b"k")
    name, function, *sizes = api.calls[3][:10]
    assert (name, function) == ("hipModuleLaunchKernel", "function")
    assert sizes == [7, 2, 1, 256, 1, 1, 1024, 99]
    assert api.seen == list(CONTENTS.values())


def test_a_cooperative_launch_has_a_call_of_its_own():
    assert launched(cooperative=True).calls[3][0] == "hipModuleLaunchCooperativeKernel"


def test_clusters_are_refused():
    with pytest.raises(DeviceError, match="clusters"):
        launched(cluster=2)


def test_tensor_maps_are_refused():
    spec = TensorMap(
        element_type=6, element_bytes=2, swizzle=3, block_shape=(16, 64),
        shape=(32, 128), strides=(128, 1),
    )  # fmt: skip
    with pytest.raises(DeviceError, match="no CUtensorMap"):
        HipDevice(0, FakeHip()).tensor_map(spec, 4096)


@pytest.mark.parametrize("name", ["hipSetDevice", "hipModuleLoadData", "hipModuleGetFunction"])
def test_a_refused_call_is_an_error(name):
    with pytest.raises(DeviceError, match="refused"):
        HipDevice(0, FakeHip(fail=name)).load(b"", plan())
