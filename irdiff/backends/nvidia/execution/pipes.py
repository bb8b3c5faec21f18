"""The cost of an instruction on one multiprocessor: its pipe, the cycles it holds it, and its latency.

Latencies, in cycles, say when a result is there where a scoreboard and not the schedule does; they are round
figures near what microbenchmarks of Hopper report, and none was fitted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from irdiff.execution.schedule import QUARTERS, Load, Op
from irdiff.ir.blocks import CodeInstruction
from irdiff.ir.sass.instructions import SassInstruction

_LANES = 32
_SECTOR_BYTES = 32


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


def ops(code: Sequence[CodeInstruction], load: Load) -> list[Op] | None:
    """None for code that is not SASS."""
    pipes = _Pipes(load)
    own = [pipes.op(ins) for ins in code if isinstance(ins, SassInstruction)]
    return own if len(own) == len(code) else None


class _Pipes:
    """Computes what each instruction costs under the load of one launch."""

    def __init__(self, load: Load) -> None:
        self._rates, self._each = load.rates, load.each
        self._latencies = latencies = Latencies()
        self._load = latencies.l2 + load.cold * (latencies.dram - latencies.l2)
        self._share = min(QUARTERS, max(1, load.warps))

    def op(self, ins: SassInstruction) -> Op:
        """The schedule of ptxas is in the control bits: Z. Jia et al., "Dissecting the NVIDIA Volta GPU
        Architecture via Microbenchmarking", 2018.
        """
        kind, pipe, hold, latency, number = self._costs(ins)
        bits = ins.control
        return Op(
            kind, pipe, hold, latency, stall=max(1, bits & 15), result=bits >> 5 & 7, operands=bits >> 8 & 7,
            waits=bits >> 11 & 63, number=number,
        )  # fmt: skip

    def _costs(self, ins: SassInstruction) -> tuple[str, str, float, float, int]:
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
    numbers = [operand.number for operand in ins.operands if operand.kind == "imm"]
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
