"""One side of a case, ready to be counted: what is launched, and the machine code that executes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from irdiff.backends import launch_plan
from irdiff.model import Launch
from irdiff.work import launch_facts
from irdiff.work.launch_facts import LaunchFacts


@dataclass(frozen=True, kw_only=True)
class CompiledLaunch:
    launch: Launch
    metadata: Mapping[str, object]
    """Triton's, of the compiled kernel."""
    binary: bytes
    """A cubin."""
    arch: int
    """As in a target: 90."""

    @property
    def kernel(self) -> str:
        return str(self.metadata.get("name", self.launch.kernel))

    @cached_property
    def facts(self) -> LaunchFacts:
        """Raises IrdiffError where the entry of the binary is not what would be launched."""
        entry = launch_plan.read_entry(self.binary, self.kernel, "cuda")
        plan = launch_plan.plan(self.launch, self.metadata, entry, backend="cuda", warp_size=32)
        return launch_facts.facts_of(plan, self.binary, self.arch)
