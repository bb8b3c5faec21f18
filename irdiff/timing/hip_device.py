"""AMD GPUs through hip-python. Launches as Triton's launcher does (3.9, `backends/amd/driver.c`)."""

from __future__ import annotations

from typing import Any

from irdiff.timing.abi import LaunchPlan, TensorMap
from irdiff.timing.device import Card, DeviceError, DriverError, ParameterBlock


class HipDevice:
    """One AMD GPU; torch has made its primary context current."""

    def __init__(self, index: int, api: Any = None) -> None:
        if api is None:
            from hip import hip

            api = hip
        self.api = api
        self.index = index
        self._check(api.hipSetDevice(index))

    def _check(self, result: tuple[Any, ...]) -> Any:
        code, *values = result
        if int(code) != 0:
            raise DriverError(f"the HIP runtime refused a call: {code}")
        return values[0] if len(values) == 1 else tuple(values)

    def describe(self) -> Card:
        import torch

        facts = torch.cuda.get_device_properties(self.index)
        return Card(
            index=self.index,
            name=facts.name,
            target=facts.gcnArchName.split(":")[0],
            uuid=str(getattr(facts, "uuid", "")),
            memory_bytes=facts.total_memory,
            l2_bytes=facts.L2_cache_size,
            multiprocessors=facts.multi_processor_count,
            driver=f"HIP {self._check(self.api.hipDriverGetVersion())}",
        )

    def load(self, binary: bytes, plan: LaunchPlan) -> object:
        module = self._check(self.api.hipModuleLoadData(binary))
        function: object = self._check(self.api.hipModuleGetFunction(module, plan.kernel.encode()))
        return function

    def tensor_map(self, spec: TensorMap, address: int) -> bytes:  # noqa: ARG002 - the protocol's
        raise DeviceError("AMD GPUs have no CUtensorMap")

    def launch(self, function: object, plan: LaunchPlan, block: ParameterBlock, stream: int) -> None:
        if plan.cluster != 1:
            raise DeviceError(f"{plan.kernel}: clusters on AMD GPUs are not launched by this irdiff")
        api = self.api
        launch = api.hipModuleLaunchCooperativeKernel if plan.cooperative else api.hipModuleLaunchKernel
        sizes = (*plan.grid, plan.block_threads, 1, 1, plan.shared_bytes, stream)
        if plan.cooperative:
            self._check(launch(function, *sizes, block.address))
        else:
            self._check(launch(function, *sizes, block.address, None))
