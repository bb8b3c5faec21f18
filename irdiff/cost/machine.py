"""What an instruction takes on one multiprocessor: its pipe, the cycles it holds it, and its latency.

Throughputs are facts of the target (`targets/*.toml`, with sources). Latencies, in cycles, say when a result
is there where a scoreboard and not the schedule does; they are round figures near what microbenchmarks of
Hopper report, and none was fitted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from irdiff.cost.profile import Profile
from irdiff.ir.blocks import CodeInstruction
from irdiff.ir.sass.instructions import SassInstruction
from irdiff.model import Target

QUARTERS = 4
"""Schedulers of a multiprocessor."""
_LANES = 32
_SECTOR_BYTES = 32


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
    """Of those that one warp issues."""
    multiprocessors: int
    clock_ghz: float


@dataclass(frozen=True, kw_only=True)
class Latencies:
    shared: float = 30.0
    special: float = 23.0
    shuffle: float = 25.0
    constant: float = 40.0
    l2: float = 280.0
    dram: float = 620.0
    matrix: float = 34.0
    barrier: float = 20.0
    fence: float = 30.0
    atomic: float = 500.0
    local: float = 100.0


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


def timed_code(code: Sequence[CodeInstruction]) -> Sequence[SassInstruction] | None:
    """The code as SASS, which alone has a model of its time; None for any other."""
    sass = [ins for ins in code if isinstance(ins, SassInstruction)]
    return sass if len(sass) == len(code) else None


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


_SPECIAL = frozenset(["MUFU", "F2F", "F2I", "I2F", "FRND", "POPC", "FLO", "BREV", "I2FP"])
_FP32 = frozenset(
    ["FADD", "FMUL", "FFMA", "FMNMX", "FSETP", "FSEL", "HADD2", "HMUL2", "HFMA2", "HSETP2", "HMNMX2", "FCHK"]
)
_MULTIPLY = frozenset(["IMAD", "IDP"])
_FP64 = frozenset(["DADD", "DMUL", "DFMA", "DSETP"])
_SHARED = frozenset(["LDS", "STS", "LDSM", "STSM", "ATOMS"])
_GLOBAL_LOAD = frozenset(["LDG", "LD"])
_GLOBAL_STORE = frozenset(["STG", "ST", "RED", "REDG"])
_ATOMIC = frozenset(["ATOM", "ATOMG"])
_FENCE = frozenset(["MEMBAR", "FENCE", "ERRBAR"])
_CONSTANT = frozenset(["LDC", "S2R", "S2UR", "R2UR"])
_MATRIX = frozenset(["HMMA", "IMMA", "QMMA", "BMMA", "DMMA"])
_GROUP_MATRIX = frozenset(["HGMMA", "QGMMA", "IGMMA", "BGMMA"])


class Machine:
    """Turns the instructions of one launch into `Op`s."""

    def __init__(self, rates: Rates, profile: Profile, *, warps: int, cold: float) -> None:
        """`warps`: that a multiprocessor holds. `cold`: share of the sectors that come from the GPU's memory,
        and not from its L2 cache.
        """
        self._rates, self._profile = rates, profile
        self._latencies = latencies = Latencies()
        self._load = latencies.l2 + cold * (latencies.dram - latencies.l2)
        self._share = min(QUARTERS, max(1, warps))

    def ops(self, code: Sequence[SassInstruction]) -> list[Op]:
        return [self._op(ins) for ins in code]

    def _each(self, name: str, place: int) -> float:
        return self._profile.each(name, place)

    def _op(self, ins: SassInstruction) -> Op:
        """The schedule of ptxas is in the control bits: Z. Jia et al., "Dissecting the NVIDIA Volta GPU
        Architecture via Microbenchmarking", 2018.
        """
        kind, pipe, hold, latency, number = self._costs(ins)
        bits = ins.control
        return Op(
            kind, pipe, hold, latency, stall=max(1, bits & 15), result=bits >> 5 & 7, operands=bits >> 8 & 7,
            waits=bits >> 11 & 63, number=number,
        )  # fmt: skip

    def _costs(  # noqa: PLR0911, PLR0912 - a table of opcodes
        self, ins: SassInstruction
    ) -> tuple[str, str, float, float, int]:
        rates, latencies, opcode = self._rates, self._latencies, ins.opcode
        share = self._share
        if opcode in _SPECIAL:
            wide = rates.special if opcode != "I2FP" else rates.integer
            return "plain", "xu", _LANES * QUARTERS / wide, latencies.special, 0
        if opcode in _FP32:
            return "plain", "fma", _LANES * QUARTERS / rates.fp32, 5.0, 0
        if opcode in _MULTIPLY:
            return "plain", "fmaheavy", _LANES * QUARTERS / rates.integer, 5.0, 0
        if opcode in _FP64:
            return "plain", "fp64", _LANES * QUARTERS / rates.fp64, 16.0, 0
        if opcode == "SHFL":
            return "plain", "lsu", share * 1.0, latencies.shuffle, 0
        if opcode in _SHARED:
            waves = max(1.0, self._each("wavefronts", ins.place))
            return "plain", "lsu", share * waves, latencies.shared + waves - 1, 0
        if opcode in _GLOBAL_LOAD or opcode in _ATOMIC or opcode in _GLOBAL_STORE or opcode == "LDGSTS":
            sectors = max(
                self._each("sectors", ins.place), 4.0 * (self._each("unknown_requests", ins.place) > 0)
            )
            hold = share * sectors * _SECTOR_BYTES / rates.l2_bytes
            if opcode == "LDGSTS":
                return "copy", "l2", hold, self._load, 0
            latency = (
                latencies.atomic if opcode in _ATOMIC else self._load if opcode in _GLOBAL_LOAD else 20.0
            )
            return "load", "l2", hold, latency, 0
        if opcode in ("LDL", "STL"):
            sectors = max(1.0, self._each("local_sectors", ins.place))
            return "load", "l2", share * sectors * _SECTOR_BYTES / rates.l2_bytes, latencies.local, 0
        if opcode == "LDGDEPBAR":
            return "commit", "none", 0.0, 0.0, 0
        if opcode == "DEPBAR":
            return "drain", "none", 0.0, 0.0, _last_number(ins)
        if opcode in _MATRIX:
            return "plain", "tensor", _macs(ins) / (rates.warp_matrix_fmas / QUARTERS), latencies.matrix, 0
        if opcode in _GROUP_MATRIX:
            hold = _macs(ins) / QUARTERS / (rates.matrix_fmas / QUARTERS)
            waves = self._each("wavefronts", ins.place) * QUARTERS
            commits = int(any("gsb" in word for word in ins.text.split()))
            return "matrix", "tensor", max(hold, waves), latencies.matrix, commits
        if opcode == "WARPGROUP":
            if "DEPBAR" in ins.modifiers:
                return "matrix wait", "none", 0.0, 0.0, _last_number(ins)
            return "plain", "none", 0.0, 8.0, 0
        if opcode == "BAR":
            return ("barrier" if "ARV" not in ins.modifiers else "plain"), "none", 0.0, latencies.barrier, 0
        if opcode in _FENCE:
            return "plain", "none", 0.0, latencies.fence, 0
        if opcode in ("UTMALDG", "UBLKCP"):
            return "tma", "l2", share * self._each("tma_bytes", ins.place) / rates.l2_bytes, self._load, 0
        if opcode in ("UTMASTG", "UTMAREDG"):
            return "load", "l2", share * self._each("tma_bytes", ins.place) / rates.l2_bytes, 20.0, 0
        if opcode == "SYNCS":
            if "PHASECHK" in ins.modifiers:
                return "arrived", "none", 0.0, 20.0, 0
            return ("expect" if "TRANS64" in ins.modifiers else "plain"), "none", 0.0, 20.0, 0
        if opcode in _CONSTANT:
            return "plain", "none", 0.0, latencies.constant, 0
        if opcode.startswith("U") or opcode in ("NOP", "BRA", "EXIT", "BSSY", "BSYNC", "WARPSYNC"):
            return "plain", "none", 0.0, 12.0, 0
        return "plain", "alu", _LANES * QUARTERS / rates.integer, 6.0, 0


def _last_number(ins: SassInstruction) -> int:
    numbers = [row.number for row in ins.operands if row.kind == "imm"]
    return numbers[-1] if numbers else 0


def _macs(ins: SassInstruction) -> float:
    """Multiply-adds, as if of 16-bit numbers: narrower ones run faster, wider ones slower."""
    shape = next((word for word in ins.modifiers if word[0].isdigit()), "")
    if "x" in shape:
        m, n, k = (int(number) for number in shape.split("x")[:3])
    elif len(shape) >= 3:
        m, n, k = (
            int(shape[:2]) if shape[:2] == "16" else int(shape[0]),
            8,
            int(shape[3:] or 8) if shape[:2] == "16" else int(shape[2:]),
        )
    else:
        return 2048.0
    scale = 2.0 if "TF32" in ins.modifiers else 1.0
    if ins.opcode in ("QGMMA", "IGMMA", "QMMA", "IMMA"):
        scale = 0.5
    if ins.opcode == "DMMA":
        scale = 16.0
    return m * n * k * scale
