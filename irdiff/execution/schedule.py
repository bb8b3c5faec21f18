"""The inputs of a simulated scheduler of a multiprocessor: throughputs, and instructions with their times.

Throughputs are facts of the target (`targets/*.toml`, with sources).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from irdiff.model import Target

QUARTERS = 4
"""Schedulers of a multiprocessor."""


@dataclass(frozen=True, kw_only=True)
class Rates:
    """A target's throughputs: results a cycle and multiprocessor, and bytes."""

    fp32: float
    integer: float
    special: float
    fp64: float
    shared_bytes: float
    l2_bytes: float
    dram_bytes: float
    matrix_fmas: float
    """16-bit multiply-adds of the warp group's matrix instructions."""
    warp_matrix_fmas: float
    """16-bit multiply-adds of matrix instructions that one warp issues."""
    multiprocessors: int
    clock_ghz: float


_STATED = (
    "multiprocessors", "clock_ghz", "fp32_per_cycle", "integer_per_cycle", "special_per_cycle",
    "fp64_per_cycle", "shared_bytes_per_cycle", "l2_bytes_per_cycle", "sustained_memory_tb_per_s",
    "matrix_fmas_per_cycle", "warp_matrix_fmas_per_cycle",
)  # fmt: skip


def rates(target: Target) -> Rates | None:
    """None for a target that does not state its throughputs."""
    facts: Mapping[str, Any] = target.facts
    if any(not isinstance(facts.get(name), (int, float)) or not facts[name] for name in _STATED):
        return None
    multiprocessors, clock = int(facts["multiprocessors"]), float(facts["clock_ghz"])
    per_cycle = 1 / (multiprocessors * clock)
    return Rates(
        fp32=float(facts["fp32_per_cycle"]), integer=float(facts["integer_per_cycle"]),
        special=float(facts["special_per_cycle"]), fp64=float(facts["fp64_per_cycle"]),
        shared_bytes=float(facts["shared_bytes_per_cycle"]), l2_bytes=float(facts["l2_bytes_per_cycle"]),
        dram_bytes=float(facts["sustained_memory_tb_per_s"]) * 1000 * per_cycle,
        matrix_fmas=float(facts["matrix_fmas_per_cycle"]),
        warp_matrix_fmas=float(facts["warp_matrix_fmas_per_cycle"]),
        multiprocessors=multiprocessors, clock_ghz=clock,
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Load:
    """The work that a launch gives to one multiprocessor."""

    rates: Rates
    each: Callable[[str, int], float]
    """By a column of `memory_costs.COLUMNS` and a place in the code: what one execution by a warp moves."""
    warps: int
    """That a multiprocessor holds."""
    cold: float
    """Share of the sectors that come from the GPU's memory, and not from its L2 cache."""


@dataclass(frozen=True, slots=True)
class Op:
    """An instruction as the simulated scheduler sees it; cycles of one scheduler's share of the pipes."""

    kind: str
    """`plain`, `load`, `copy`, `commit`, `drain`, `matrix`, `matrix wait`, `barrier`, `tma`, `expect`, or
    `arrived`."""
    pipe: str
    hold: float
    """Cycles that it keeps its pipe busy."""
    latency: float
    stall: int
    result: int
    operands: int
    waits: int
    number: int = 0
    """Groups that may stay open at a wait."""
