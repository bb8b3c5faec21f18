"""The record of a launch's work, from what each instruction did. Pure."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from irdiff.counted_work import Amount, LoopWork, Work
from irdiff.work import classes, loop_tree
from irdiff.work.accesses import LANES_OF_A_WARP
from irdiff.work.flow import CodeInstruction
from irdiff.work.grid import WholeGrid
from irdiff.work.launch_facts import LaunchFacts
from irdiff.work.loop_tree import CodeLoop
from irdiff.work.memory_costs import COLUMNS
from irdiff.work.sass import SassFunction, SassInstruction
from irdiff.work.tensor_memory import TENSOR_MATRIX

_SPACES = {
    "global load": "global load", "global store": "global store", "atomic": "global atomic",
    "shared load": "shared load", "shared store": "shared store", "spill": "local",
    "tensor memory load": "tensor memory load", "tensor memory store": "tensor memory store",
}  # fmt: skip
"""Class of an instruction → where its bytes go; but for the opcodes below."""
_SPACE_OF_OPCODE = {"LDGSTS": "global to shared", "ATOMS": "shared atomic", "REDS": "shared atomic"}


_Instruction = TypeVar("_Instruction", bound=CodeInstruction)


@dataclass(frozen=True)
class Counts(Generic[_Instruction]):
    """Counts by column and instruction."""

    code: Sequence[_Instruction]
    lanes: int
    """Of a warp."""
    sure: Any
    beyond: Any

    def amount(self, column: str, places: Collection[int] | None = None) -> Amount:
        at = COLUMNS.index(column)
        chosen = slice(None) if places is None else list(places)
        low = float(self.sure[at, chosen].sum())
        return Amount(round(low), round(low + float(self.beyond[at, chosen].sum())))

    def bounded(self, column: str, unknown: str, places: Collection[int] | None = None) -> Amount:
        """With accesses at unknown addresses: each takes one sector or wavefront to one a lane."""
        surely, requests = self.amount(column, places), self.amount(unknown, places)
        return Amount(surely.low + requests.low, surely.high + self.lanes * requests.high)

    def sectors(self, places: Collection[int] | None = None) -> Amount:
        return self.bounded("sectors", "unknown_requests", places)

    def wavefronts(self, places: Collection[int] | None = None) -> Amount:
        return self.bounded("wavefronts", "unknown_wavefronts", places)

    def grouped(
        self, name_of: Callable[[_Instruction], str | None], column: str = "executed"
    ) -> dict[str, Amount]:
        """By name, without those that nothing was counted of."""
        places: dict[str, list[int]] = defaultdict(list)
        for ins in self.code:
            if (name := name_of(ins)) is not None:
                places[name].append(ins.place)
        amounts = {name: self.amount(column, places[name]) for name in sorted(places)}
        return {name: amount for name, amount in amounts.items() if amount.high}


def work(
    function: SassFunction,
    facts: LaunchFacts,
    found: WholeGrid,
    notes: tuple[str, ...],
    shapes: Mapping[int, str],
) -> Work:
    """`shapes`: by place, those of matrix instructions whose registers name them."""
    table = Counts(function.instructions, LANES_OF_A_WARP, *found.total)
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
        programs_executed=found.executed,
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
    found = {}
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
        found[" ".join([opcode, *words])] = Amount(amount.low * operations, amount.high * operations)
    return found


@dataclass(frozen=True)
class CountedLoop:
    """A loop that runs: how often, and the instructions whose innermost loop it is."""

    loop: CodeLoop
    inside: list[int]
    """Places."""
    entries: Amount
    iterations: Amount


def _again(table: Counts[Any], loop: CodeLoop) -> Amount:
    """Times that a warp comes back to the first instruction: by a branch, or from the one before it."""
    by_branch = [place for place in loop.branches if table.code[place].target == loop.first]
    others = [place for place in loop.branches if place not in by_branch]
    taken, passed, left = (
        table.amount("taken", by_branch), table.amount("executed", others), table.amount("taken", others),
    )  # fmt: skip
    return Amount(taken.low + passed.low - left.low, taken.high + passed.high - left.high)


def counted_loops(table: Counts[Any]) -> list[CountedLoop]:
    found = loop_tree.loops(table.code)
    places: dict[int, list[int]] = defaultdict(list)
    for place, index in enumerate(loop_tree.innermost(found, len(table.code))):
        if index is not None:
            places[index].append(place)
    loops = []
    for index, loop in enumerate(found):
        iterations, again = table.amount("executed", [loop.first]), _again(table, loop)
        if iterations.high:
            entries = Amount(iterations.low - again.low, iterations.high - again.high)
            loops.append(CountedLoop(loop, places[index], entries, iterations))
    return loops


def _loops(table: Counts[SassInstruction]) -> tuple[LoopWork, ...]:
    code, rows = table.code, []
    for counted in counted_loops(table):
        inside, loop = counted.inside, counted.loop

        def executed(opcodes: Collection[str], inside: list[int] = inside) -> Amount:
            return table.amount("executed", [place for place in inside if code[place].opcode in opcodes])

        rows.append(
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
    return tuple(rows)
