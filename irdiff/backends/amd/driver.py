"""AMD's GPUs through hip-python. Launches are those of Triton's own launcher (3.9, `driver.c`)."""

from __future__ import annotations

from typing import Any

from irdiff.backends.device import Device, DeviceError, ParameterBlock, checked
from irdiff.backends.launch_plan import LaunchPlan, TensorMap


def opened(index: int) -> Device:
    return HipDevice(index)


def target(properties: Any) -> str:
    return str(properties.gcnArchName).split(":")[0]


def uuid(properties: Any) -> str:
    return str(getattr(properties, "uuid", ""))


class HipDevice:
    """One AMD GPU; torch has made its primary context current."""

    def __init__(self, index: int, api: Any = None) -> None:
        if api is None:
            from hip import hip

            api = hip
        self.api = api
        self._check(api.hipSetDevice(index))
        self.driver = f"HIP {self._check(api.hipDriverGetVersion())}"

    def _check(self, result: tuple[Any, ...]) -> Any:
        return checked(result, lambda code: f"the HIP runtime refused a call: {code}")

    def load(self, binary: bytes, plan: LaunchPlan) -> object:
        module = self._check(self.api.hipModuleLoadData(binary))
        function: object = self._check(self.api.hipModuleGetFunction(module, plan.kernel.encode()))
        return function

    def tensor_map(self, spec: TensorMap, address: int) -> bytes:  # noqa: ARG002 - a protocol's
        raise DeviceError("AMD GPUs have no CUtensorMap")

    def launch(self, function: object, plan: LaunchPlan, block: ParameterBlock, stream: int) -> None:
        if plan.cluster != 1:
            raise DeviceError(f"{plan.kernel}: clusters on AMD GPUs are not launched by this irdiff")
        sizes = (*plan.grid, plan.block_threads, 1, 1, plan.shared_bytes, stream)
        if plan.cooperative:
            self._check(self.api.hipModuleLaunchCooperativeKernel(function, *sizes, block.address))
        else:
            self._check(self.api.hipModuleLaunchKernel(function, *sizes, block.address, None))
