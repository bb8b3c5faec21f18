"""The record of a launch's work, from what each instruction did. Pure."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

from irdiff.backends.nvidia.execution.accesses import LANES_OF_A_WARP
from irdiff.counted_work import Amount, LoopWork, Work
from irdiff.execution.counts import Counts, counted_loops
from irdiff.execution.grid import WholeGrid
from irdiff.execution.launch_facts import LaunchFacts
from irdiff.ir.sass import classes
from irdiff.ir.sass.instructions import SassFunction, SassInstruction
from irdiff.ir.sass.tensor_memory import TENSOR_MATRIX

_SPACES = {
    "global load": "global load", "global store": "global store", "atomic": "global atomic",
    "shared load": "shared load", "shared store": "shared store", "spill": "local",
    "tensor memory load": "tensor memory load", "tensor memory store": "tensor memory store",
}  # fmt: skip
"""Class of an instruction → where its bytes go; but for the opcodes below."""
_SPACE_OF_OPCODE = {"LDGSTS": "global to shared", "ATOMS": "shared atomic", "REDS": "shared atomic"}


def work(
    function: SassFunction,
    facts: LaunchFacts,
    counted_grid: WholeGrid,
    notes: tuple[str, ...],
    shapes: Mapping[int, str],
) -> Work:
    """`shapes`: by place, those of matrix instructions whose registers name them."""
    table = Counts(function.instructions, LANES_OF_A_WARP, *counted_grid.total)
    programs = math.prod(facts.grid)

    def executed(opcodes: Collection[str]) -> Amount:
        return table.amount("executed", [ins.place for ins in function.instructions if ins.opcode in opcodes])

    return Work(
        programs=programs,
        warps=programs * facts.warps,
        instructions=table.amount("executed"),
        thread_instructions=table.amount("lanes"),
        by_class=table.grouped(lambda ins: classes.class_of(ins.opcode)),
        by_pipe=table.grouped(lambda ins: classes.pipe_of(ins.opcode, facts.arch)),
        global_requests=table.amount("requests"),
        global_sectors=table.sectors(),
        least_global_sectors=table.amount("least_sectors"),
        unknown_global_requests=table.amount("unknown_requests"),
        cache_policies=table.grouped(_policy, "requests"),
        shared_wavefronts=table.wavefronts(),
        least_shared_wavefronts=table.bounded("least_wavefronts", "unknown_wavefronts"),
        unknown_shared_requests=table.amount("unknown_wavefronts"),
        spill_sectors=table.amount("local_sectors"),
        bytes_by_space=table.grouped(_space, "bytes"),
        tma_bytes=table.amount("tma_bytes"),
        matrix_operations={
            **_matrix_operations(table.grouped(_shape)),
            **table.grouped(lambda ins: _named_shape(ins, shapes), "matrix_operations"),
        },
        barriers=executed(classes.BARRIERS),
        waits=executed(classes.WAITS),
        atomics=executed(classes.ATOMICS),
        loops=_loops(table),
        programs_executed=counted_grid.executed,
        notes=notes,
    )


def _policy(ins: SassInstruction) -> str | None:
    if ins.opcode not in classes.GLOBAL:
        return None
    return " ".join(word for word in ins.modifiers if word in classes.POLICIES) or "default"


def _space(ins: SassInstruction) -> str | None:
    return _SPACE_OF_OPCODE.get(ins.opcode) or _SPACES.get(classes.class_of(ins.opcode))


def _shape(ins: SassInstruction) -> str | None:
    if ins.opcode not in classes.CLASSES["matrix"]:
        return None
    words = " ".join(word for word in ins.modifiers if word not in ("SP", "gsb0"))
    return f"{ins.opcode} {words}"


def _named_shape(ins: SassInstruction, shapes: Mapping[int, str]) -> str | None:
    return (shapes.get(ins.place) or ins.opcode) if ins.opcode in TENSOR_MATRIX else None


def _matrix_operations(instructions: Mapping[str, Amount]) -> dict[str, Amount]:
    """Two operations for each multiply-add; a warp group of four executes one HGMMA together."""
    by_name = {}
    for name, amount in instructions.items():
        opcode, *words = name.split()
        shape = next((word for word in words if word[0].isdigit()), "")
        if "x" in shape:
            m, n, k = (int(number) for number in shape.split("x")[:3])
            operations = 2 * m * n * k // 4
        elif len(shape) >= 4:  # `16816`: 16 × 8 × 16
            m, n, k = int(shape[:2]), int(shape[2]), int(shape[3:])
            operations = 2 * m * n * k
        else:
            continue
        by_name[" ".join([opcode, *words])] = Amount(amount.low * operations, amount.high * operations)
    return by_name


def _loops(table: Counts[SassInstruction]) -> tuple[LoopWork, ...]:
    code, loops = table.code, []
    for counted in counted_loops(table):
        inside, loop = counted.inside, counted.loop

        def executed(opcodes: Collection[str], inside: list[int] = inside) -> Amount:
            return table.amount("executed", [place for place in inside if code[place].opcode in opcodes])

        loops.append(
            LoopWork(
                first_address=code[loop.first].address,
                last_address=code[max(loop.branches)].address,
                depth=loop.depth,
                entries=counted.entries,
                iterations=counted.iterations,
                instructions=table.amount("executed", inside),
                global_requests=table.amount("requests", inside),
                global_sectors=table.sectors(inside),
                shared_wavefronts=table.wavefronts(inside),
                spill_sectors=table.amount("local_sectors", inside),
                matrix_instructions=executed(classes.CLASSES["matrix"]),
                barriers=executed(classes.BARRIERS),
                waits=executed(classes.WAITS),
            )
        )
    return tuple(loops)
