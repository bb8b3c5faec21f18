"""One side of a case, ready to be counted: what is launched, and the machine code that executes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from irdiff.backends import launch_plan
from irdiff.backends.launch_plan import LaunchPlan
from irdiff.model import Launch


@dataclass(frozen=True, kw_only=True)
class CompiledLaunch:
    launch: Launch
    metadata: Mapping[str, object]
    """Triton's, of the compiled kernel."""
    binary: bytes
    """As the backend's driver loads it."""
    backend: str
    """As in a target."""
    arch: int | str
    """As in a target: 90, `gfx942`."""
    assembly: str = ""
    """The assembly that the binary was made of."""

    @property
    def kernel(self) -> str:
        return str(self.metadata.get("name", self.launch.kernel))

    def plan(self, warp_size: int) -> LaunchPlan:
        """Raises IrdiffError where the entry of the binary is not what would be launched."""
        entry = launch_plan.read_entry(self.binary, self.kernel, self.backend)
        return launch_plan.plan(self.launch, self.metadata, entry, backend=self.backend, warp_size=warp_size)
