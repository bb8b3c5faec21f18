"""One side of a case, ready to be counted: what is launched, and the machine code that executes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from irdiff.backends import launch_plan
from irdiff.backends.launch_plan import LaunchPlan
from irdiff.ir.amdgcn import machine_code
from irdiff.ir.amdgcn.machine_code import MachineKernel
from irdiff.model import Launch
from irdiff.work import launch_facts
from irdiff.work.launch_facts import LaunchFacts


@dataclass(frozen=True, kw_only=True)
class CompiledLaunch:
    launch: Launch
    metadata: Mapping[str, object]
    """Triton's, of the compiled kernel."""
    binary: bytes
    """A cubin or a code object."""
    arch: int | str
    """As in a target: 90, `gfx942`."""
    assembly: str = ""
    """What a code object was made of: it says what executes."""

    @property
    def kernel(self) -> str:
        return str(self.metadata.get("name", self.launch.kernel))

    @cached_property
    def facts(self) -> LaunchFacts:
        """Raises IrdiffError where the entry of the binary is not what would be launched."""
        if isinstance(self.arch, int):
            return launch_facts.facts_of(self._plan("cuda", 32), self.binary, self.arch)
        return launch_facts.of_waves(self._plan("hip", 64), self.machine.hidden)

    @cached_property
    def machine(self) -> MachineKernel:
        """What executes on an AMD GPU. Raises IrdiffError."""
        return machine_code.read(self.assembly, self.kernel)

    def _plan(self, backend: str, warp_size: int) -> LaunchPlan:
        entry = launch_plan.read_entry(self.binary, self.kernel, backend)
        return launch_plan.plan(self.launch, self.metadata, entry, backend=backend, warp_size=warp_size)
