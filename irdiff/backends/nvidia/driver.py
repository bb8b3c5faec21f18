"""NVIDIA's GPUs through cuda-bindings. Launches are those of Triton's own launcher (3.9, `driver.c`)."""

from __future__ import annotations

import ctypes
from typing import Any

from irdiff.backends.device import Device, DriverError, ParameterBlock, checked
from irdiff.backends.launch_plan import LaunchPlan, TensorMap

_DEFAULT_SHARED_BYTES = 48 << 10
_PORTABLE_CLUSTER = 8
_SMALL_TENSOR_BYTES = 128 << 10
_WORKAROUND_UNTIL_DRIVER = 13010


def opened(index: int) -> Device:
    return CudaDevice(index)


def target(properties: Any) -> str:
    return f"sm_{properties.major}{properties.minor}"


def uuid(properties: Any) -> str:
    return f"GPU-{getattr(properties, 'uuid', '')}"


class CudaDevice:
    """One NVIDIA GPU; the primary context, which torch shares, is current."""

    def __init__(self, index: int) -> None:
        from cuda.bindings import driver

        self.api: Any = driver
        self._check(driver.cuInit(0))
        self._device = self._check(driver.cuDeviceGet(index))
        self._version = version = int(self._check(driver.cuDriverGetVersion()))
        self.driver = f"CUDA {version // 1000}.{version % 1000 // 10}"

    def _check(self, result: tuple[Any, ...]) -> Any:
        return checked(result, self._refusal)

    def _refusal(self, code: Any) -> str:
        _, text = self.api.cuGetErrorString(code)
        return f"the CUDA driver refused a call: {text.decode() if isinstance(text, bytes) else code}"

    def load(self, binary: bytes, plan: LaunchPlan) -> object:
        """The kernel of a binary, allowed its dynamic shared memory. Raises DriverError."""
        api = self.api
        image = ctypes.create_string_buffer(binary, len(binary))
        module = self._check(api.cuModuleLoadData(ctypes.addressof(image)))
        function = self._check(api.cuModuleGetFunction(module, plan.kernel.encode()))
        attribute = api.CUfunction_attribute
        if plan.shared_bytes > _DEFAULT_SHARED_BYTES:
            key = api.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
            opt_in = self._check(api.cuDeviceGetAttribute(key, self._device))
            static = attribute.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES
            most = int(opt_in) - int(self._check(api.cuFuncGetAttribute(static, function)))
            if plan.shared_bytes > most:
                wanted = f"{plan.kernel} wants {plan.shared_bytes} bytes of shared memory"
                raise DriverError(f"{wanted}; this card has {most}")
            self._check(api.cuFuncSetCacheConfig(function, api.CUfunc_cache.CU_FUNC_CACHE_PREFER_SHARED))
            limit = attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            self._check(api.cuFuncSetAttribute(function, limit, most))
        if plan.cluster > _PORTABLE_CLUSTER:
            wide = attribute.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
            self._check(api.cuFuncSetAttribute(function, wide, 1))
        return function

    def tensor_map(self, spec: TensorMap, address: int) -> bytes:
        """A CUtensorMap for a tensor at `address`."""
        api = self.api
        rank = len(spec.shape)
        shape = list(reversed(spec.shape))
        steps = [spec.element_bytes * n for n in reversed(spec.strides[:-1])]  # of dimensions 1 to rank - 1
        whole = shape[-1] * (steps[-1] if steps else spec.element_bytes)
        encoded = self._check(
            api.cuTensorMapEncodeTiled(
                api.CUtensorMapDataType(spec.element_type),
                rank,
                address,
                [api.cuuint64_t(n) for n in shape],
                [api.cuuint64_t(n) for n in [*steps, whole]],
                [api.cuuint32_t(n) for n in reversed(spec.block_shape)],
                [api.cuuint32_t(1)] * rank,
                api.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
                api.CUtensorMapSwizzle(spec.swizzle),
                api.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                api.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
            )
        )
        content = bytearray(ctypes.string_at(int(encoded.getPtr()), 128))
        last = sum((n - 1) * step for n, step in zip(shape, [spec.element_bytes, *steps], strict=True))
        if self._version <= _WORKAROUND_UNTIL_DRIVER and last + 1 < _SMALL_TENSOR_BYTES:
            # As Triton's `fill_tma_descriptor_tiled` and CUTLASS b7ecaa605 do for these drivers.
            content[8 + 21 // 8] &= ~(1 << (21 % 8)) & 0xFF
        return bytes(content)

    def launch(self, function: object, plan: LaunchPlan, block: ParameterBlock, stream: int) -> None:
        """Enqueues one launch. Raises DriverError; a kernel's fault shows when the stream is waited for."""
        api = self.api
        config = api.CUlaunchConfig()
        config.gridDimX, config.gridDimY, config.gridDimZ = plan.grid
        config.blockDimX, config.blockDimY, config.blockDimZ = plan.block_threads, 1, 1
        config.sharedMemBytes = plan.shared_bytes
        config.hStream = api.CUstream(stream)
        config.attrs = attributes = self._attributes(plan)
        config.numAttrs = len(attributes)
        self._check(api.cuLaunchKernelEx(config, function, block.address, 0))

    def _attributes(self, plan: LaunchPlan) -> list[Any]:
        api = self.api
        attributes: list[Any] = []

        def add(name: str) -> Any:
            """The value of one more attribute."""
            attribute = api.CUlaunchAttribute()
            attribute.id = getattr(api.CUlaunchAttributeID, f"CU_LAUNCH_ATTRIBUTE_{name}")
            attributes.append(attribute)
            return attribute.value

        if plan.programmatic:
            add("PROGRAMMATIC_STREAM_SERIALIZATION").programmaticStreamSerializationAllowed = 1
        if plan.cooperative:
            add("COOPERATIVE").cooperative = 1
        if plan.cluster != 1:
            size = add("CLUSTER_DIMENSION").clusterDim
            size.x, size.y, size.z = plan.cluster, 1, 1
            spread = api.CUclusterSchedulingPolicy.CU_CLUSTER_SCHEDULING_POLICY_SPREAD
            add("CLUSTER_SCHEDULING_POLICY_PREFERENCE").clusterSchedulingPolicyPreference = spread
        return attributes
