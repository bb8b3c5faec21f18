"""Resource and instruction facts of one compiled side. Pure; names carry their units."""

from __future__ import annotations

import re
from collections.abc import Mapping

from irdiff import binaries
from irdiff.compare import occupancy
from irdiff.model import Compiled, Fact, Target
from irdiff.stages import Stage
from irdiff.texts import instruction_facts

_SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_COUNTED_STAGES = (Stage.TTGIR, Stage.PTX, Stage.AMDGCN)
_METADATA = {
    "shared": "shared_bytes",
    "num_warps": "warps",
    "num_stages": "pipeline_stages",
    "tmem_size": "tmem_columns",
    "global_scratch_size": "global_scratch_bytes",
}


def of_side(compiled: Compiled, contents: Mapping[str, bytes], target: Target) -> dict[str, Fact]:
    """Everything known of one side. `contents` holds the artifacts that are at hand, by stage."""
    facts: dict[str, Fact] = {}
    for stage in (Stage.CUBIN, Stage.HSACO):
        if stage in contents:
            facts.update(binaries.machine_code(stage, contents[stage]).facts)
            facts["binary_bytes"] = len(contents[stage])
    for stage in _COUNTED_STAGES:
        if stage in contents:
            counts = instruction_facts(stage, contents[stage].decode(errors="replace"))
            facts.update({f"{stage}.{name}": count for name, count in counts.items()})
    facts.update(_from_metadata(compiled.metadata))
    facts.update(_from_assembler(compiled.assembler_log))
    facts.update(occupancy.facts(facts, target))
    return facts


def _from_metadata(metadata: Mapping[str, object]) -> dict[str, Fact]:
    return {
        fact: value
        for name, fact in _METADATA.items()
        if isinstance(value := metadata.get(name), (int, float)) and not isinstance(value, bool)
    }


def _from_assembler(log: str) -> dict[str, Fact]:
    found = _SPILLS.findall(log)
    if not found:
        return {}
    stack, stores, loads = (sum(int(row[column]) for row in found) for column in range(3))
    return {"stack_bytes": stack, "spill_store_bytes": stores, "spill_load_bytes": loads}
