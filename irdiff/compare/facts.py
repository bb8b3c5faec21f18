"""Resource and instruction facts of one compiled side. Pure; names carry their units."""

from __future__ import annotations

from collections.abc import Mapping

from irdiff import backends
from irdiff.backends import occupancy
from irdiff.backends.machine_code import machine_code
from irdiff.backends.stages import ASSEMBLIES, BINARIES
from irdiff.model import Compiled, Fact, Target
from irdiff.stages import Stage
from irdiff.texts import instruction_facts

_COUNTED = (Stage.TTGIR, *ASSEMBLIES)
READ = frozenset({*_COUNTED, *BINARIES})
"""The stages whose artifacts have facts."""
_METADATA = {
    "shared": "shared_bytes",
    "num_warps": "warps",
    "num_stages": "pipeline_stages",
    "global_scratch_size": "global_scratch_bytes",
}


def of_side(compiled: Compiled, contents: Mapping[str, bytes], target: Target) -> dict[str, Fact]:
    """Everything known of one side. `contents` holds the artifacts that are at hand, by stage."""
    facts: dict[str, Fact] = {}
    for stage in BINARIES:
        if stage in contents:
            facts.update(machine_code(stage, contents[stage]).facts)
            facts["binary_bytes"] = len(contents[stage])
    for stage in _COUNTED:
        if stage in contents:
            counts = instruction_facts(stage, contents[stage].decode(errors="replace"))
            facts.update({f"{stage}.{name}": count for name, count in counts.items()})
    backend = backends.of(target.backend)
    binary = backend.BINARY
    if binary and binary.artifact not in contents and binary.assembly in contents:
        facts.update(backend.assembly_facts(contents[binary.assembly].decode(errors="replace")))
    facts.update(_from_metadata(compiled.metadata, {**_METADATA, **backend.METADATA}))
    facts.update(backend.log_facts(compiled.assembler_log))
    facts.update(occupancy.facts(facts, target))
    return facts


def _from_metadata(metadata: Mapping[str, object], names: Mapping[str, str]) -> dict[str, Fact]:
    return {
        fact: value
        for name, fact in names.items()
        if isinstance(value := metadata.get(name), (int, float)) and not isinstance(value, bool)
    }
