"""Reads what no line of AMD assembly says alone: loads of arguments, and modes of rounding. Pure.

An `s_load` is a load of global memory like any other: its order with stores and barriers counts. Only a load
of the kernel's arguments is a value and no access, because nothing writes them while the kernel runs. The
kernel gets the address of its arguments in two registers when it begins.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from irdiff.ir.amdgcn.computed import PAIR
from irdiff.ir.amdgcn.operand_texts import SCALAR_LOAD
from irdiff.ir.program import COPY, CodeBlock, Instruction, Operation, Slot, instruction

_SETTING = re.compile(r"\.amdhsa_(user_sgpr_\w+) (\d+)")
_MODES = re.compile(r"s_(?:setreg|round_mode|denorm_mode)")


def pointer_to_arguments(lines: Sequence[str], kernel: str) -> tuple[str, ...]:
    """Returns the registers that hold the address of a kernel's arguments when it begins; empty if none do.

    Source: LLVM, "User Guide for AMDGPU Backend", "Initial Kernel Execution State".
    """
    settings = _descriptor(lines, kernel)
    first = sum(
        count
        for name, count in (("private_segment_buffer", 4), ("dispatch_ptr", 2), ("queue_ptr", 2))
        if settings.get(f"user_sgpr_{name}", 0)
    )
    has_pointer = settings.get("user_sgpr_kernarg_segment_ptr") == 1
    return (f"s{first}", f"s{first + 1}") if has_pointer else ()


def preloaded_into(lines: Sequence[str], kernel: str) -> int | None:
    """Returns the number of the scalar register that a processor preloads the first 32 bits of the arguments
    into, even if it preloads only later ones; None if it preloads none.
    """
    settings, pointer = _descriptor(lines, kernel), pointer_to_arguments(lines, kernel)
    if not (settings.get("user_sgpr_kernarg_preload_length") and pointer):
        return None
    first = int(pointer[-1][1:]) + 1 + 2 * settings.get("user_sgpr_dispatch_id", 0)
    return first - settings.get("user_sgpr_kernarg_preload_offset", 0)


def _descriptor(lines: Sequence[str], kernel: str) -> dict[str, int]:
    """Returns what the descriptor of a kernel says of the scalar registers in which it gets its arguments."""
    begin = next((n for n, line in enumerate(lines) if line == f".amdhsa_kernel {kernel}"), len(lines))
    own = itertools.takewhile(lambda line: line != ".end_amdhsa_kernel", lines[begin:])
    return {match[1]: int(match[2]) for line in own if (match := _SETTING.match(line))}


def without_loads_of_arguments(blocks: Sequence[CodeBlock], pointer: tuple[str, ...]) -> Sequence[CodeBlock]:
    """Turns loads of the kernel's arguments into values: while the kernel runs, nothing writes its arguments.

    Leaves a load as it is if one of the two registers of the pointer may have been written before it.
    """
    if not pointer:
        return blocks
    by_label = {block.label: block for block in blocks}
    waiting = [target for block in blocks if _writes(block.instructions, pointer) for target in block.targets]
    overwritten = set[str]()
    while waiting:
        label = waiting.pop()
        if label not in overwritten:
            overwritten.add(label)
            waiting += by_label[label].targets if label in by_label else ()
    return [
        block
        if block.label in overwritten
        else block._replace(instructions=tuple(_with_arguments(block.instructions, pointer)))
        for block in blocks
    ]


def _writes(instructions: Sequence[Instruction], registers: tuple[str, ...]) -> bool:
    return any(name in registers for each in instructions for name in each.results)


def _with_arguments(instructions: Sequence[Instruction], pointer: tuple[str, ...]) -> Iterator[Instruction]:
    is_there, copies = True, set[str]()
    for each in instructions:
        if not is_there and not copies:
            yield each
            continue
        operation, effect = each.operation, each.operation.effect
        is_copy = operation.compute in (PAIR, COPY) and (
            (is_there and each.reads == pointer) or (each.reads[:1] != () and each.reads[0] in copies)
        )
        if effect and SCALAR_LOAD.match(operation.name) and each.reads and each.reads[0] in copies:
            places = [part for part, _ in effect.address if not isinstance(part, str)]
            operands = *places, effect.address[-1][1]
            yield each._replace(operation=replace(operation, effect=None, operands=operands))
        else:
            yield each
        is_there = is_there and not _writes([each], pointer)
        (copies.update if is_copy else copies.difference_update)(each.results)


def under_modes(blocks: Sequence[CodeBlock]) -> tuple[CodeBlock, ...]:
    """If a text sets modes, makes floating-point operations read them: they decide how these round."""
    if not any(_MODES.match(each.operation.name) for block in blocks for each in block.instructions):
        return tuple(blocks)
    changed: dict[Operation, Operation] = {}

    def under(each: Instruction) -> tuple[Instruction, ...]:
        operation = each.operation
        if _MODES.match(operation.name):
            return each, instruction(f"mode of {operation.name}", ("mode",), ("mode", *each.reads))
        if not operation.is_float or operation.effect or operation.compute:
            return (each,)
        operands = *operation.operands, Slot(len(each.reads))
        changed[operation] = changed.get(operation) or replace(operation, operands=operands)
        return (Instruction(changed[operation], each.results, (*each.reads, "mode"), each.line),)

    return tuple(
        block._replace(
            instructions=tuple(instruction for each in block.instructions for instruction in under(each))
        )
        for block in blocks
    )
