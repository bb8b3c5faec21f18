"""The record of a launch's work on an AMD GPU, from what each instruction did. Pure.

No source was found for how local data share serves its banks, so wavefronts and conflicts are not said.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping

from irdiff.backends.amd import machine_tables
from irdiff.backends.amd.execution.code import WaveInstruction
from irdiff.counted_work import Amount, LoopWork, Work
from irdiff.execution.counts import Counts, counted_loops
from irdiff.execution.launch_facts import LaunchFacts

_CACHED = ("sc0", "sc1", "nt")


def work(table: Counts[WaveInstruction], facts: LaunchFacts, executed: int, notes: tuple[str, ...]) -> Work:
    """`executed`: programs."""
    programs = math.prod(facts.grid)
    return Work(
        programs=programs,
        warps=programs * facts.warps,
        instructions=table.amount("executed"),
        thread_instructions=table.amount("lanes"),
        by_class=table.grouped(lambda ins: machine_tables.class_of(ins.opcode)),
        by_pipe={},
        global_requests=table.amount("requests"),
        global_sectors=table.sectors(),
        least_global_sectors=table.amount("least_sectors"),
        unknown_global_requests=table.amount("unknown_requests"),
        cache_policies=table.grouped(_policy, "requests"),
        shared_wavefronts=None,
        least_shared_wavefronts=None,
        unknown_shared_requests=None,
        spill_sectors=None,
        bytes_by_space=table.grouped(_space, "bytes"),
        tma_bytes=Amount(0, 0),
        matrix_operations=_operations(table.grouped(_matrix)),
        barriers=_executed(table, machine_tables.BARRIERS),
        waits=_executed(table, machine_tables.WAITS),
        atomics=_chosen(table, lambda ins: machine_tables.class_of(ins.opcode) == "atomic"),
        loops=_loops(table),
        programs_executed=executed,
        notes=notes,
        line_bytes=machine_tables.LINE_BYTES,
    )


def _chosen(
    table: Counts[WaveInstruction],
    is_chosen: Callable[[WaveInstruction], bool],
    inside: Collection[int] | None = None,
) -> Amount:
    places = range(len(table.code)) if inside is None else inside
    return table.amount("executed", [place for place in places if is_chosen(table.code[place])])


def _executed(
    table: Counts[WaveInstruction], opcodes: Collection[str], inside: Collection[int] | None = None
) -> Amount:
    return _chosen(table, lambda ins: ins.opcode in opcodes, inside)


def _policy(ins: WaveInstruction) -> str | None:
    access = machine_tables.access_of(ins.opcode)
    if access is None or access.space != "global":
        return None
    return " ".join(word for word in _CACHED if word in ins.modifiers) or "default"


def _space(ins: WaveInstruction) -> str | None:
    access = machine_tables.access_of(ins.opcode)
    if access is None:
        return None
    if "lds" in ins.modifiers or "_lds_" in ins.opcode:
        return "global to shared"
    return f"{access.space} {access.kind}"


def _matrix(ins: WaveInstruction) -> str | None:
    return ins.opcode if machine_tables.matrix_operations(ins.opcode) else None


def _operations(instructions: Mapping[str, Amount]) -> dict[str, Amount]:
    operations = {}
    for opcode, amount in instructions.items():
        each = machine_tables.matrix_operations(opcode)
        operations[opcode] = Amount(amount.low * each, amount.high * each)
    return operations


def _loops(table: Counts[WaveInstruction]) -> tuple[LoopWork, ...]:
    code = table.code
    return tuple(
        LoopWork(
            first_address=counted.loop.first,
            last_address=max(counted.loop.branches),
            depth=counted.loop.depth,
            entries=counted.entries,
            iterations=counted.iterations,
            instructions=table.amount("executed", counted.inside),
            global_requests=table.amount("requests", counted.inside),
            global_sectors=table.sectors(counted.inside),
            shared_wavefronts=None,
            spill_sectors=None,
            matrix_instructions=_chosen(table, lambda ins: _matrix(ins) is not None, counted.inside),
            barriers=_executed(table, machine_tables.BARRIERS, counted.inside),
            waits=_executed(table, machine_tables.WAITS, counted.inside),
            label=code[counted.loop.first].shown_place,
        )
        for counted in counted_loops(table)
    )
