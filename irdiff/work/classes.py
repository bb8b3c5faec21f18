"""Classes and pipes of SASS instructions, and the record that is made from what each instruction did.

Pipes as Nsight Compute names them for compute capability 9.0 ("Pipelines" in its documentation); which opcode
runs where was read from the counters `smsp__inst_executed_pipe_*` of kernels whose counts are known.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

from irdiff.work.accesses import COLUMNS, EXECUTED
from irdiff.work.grid import WholeGrid
from irdiff.work.record import Amount, Work
from irdiff.work.sass import SassFunction, SassInstruction

CLASSES: Mapping[str, frozenset[str]] = {
    name: frozenset(words.split())
    for name, words in {
        "matrix": "HGMMA QGMMA IGMMA BGMMA HMMA IMMA QMMA BMMA DMMA OMMA UTCHMMA UTCQMMA",
        "global load": "LDG LD LDGSTS",
        "global store": "STG ST",
        "atomic": "ATOM ATOMG ATOMS RED REDG REDS",
        "shared load": "LDS LDSM",
        "shared store": "STS STSM",
        "spill": "LDL STL",
        "bulk copy": "UTMALDG UTMASTG UTMAREDG UBLKCP UTMAPF",
        "barrier": "BAR UCGABAR_ARV UCGABAR_WAIT SYNCS WARPGROUP WARPSYNC",
        "fence": "MEMBAR FENCE ERRBAR CGAERRBAR CCTL",
        "wait": "DEPBAR LDGDEPBAR UTMACMDFLUSH",
        "float": "FADD FMUL FFMA FMNMX FSETP FSEL HADD2 HMUL2 HFMA2 HSETP2 HMNMX2 DADD DMUL DFMA DSETP FCHK",
        "special function": "MUFU",
        "conversion": "F2F F2I I2F I2FP F2FP FRND I2I",
        "warp exchange": "SHFL VOTE VOTEU MATCH REDUX ELECT R2UR",
        "branch": "BRA BRX EXIT CALL RET BSSY BSYNC BREAK JMP",
        "constant load": "LDC ULDC LDCU",
    }.items()
}
_REST = "integer and moves"
_OF_OPCODE = {opcode: name for name, opcodes in CLASSES.items() for opcode in opcodes}
PIPES: Mapping[str, frozenset[str]] = {
    name: frozenset(words.split())
    for name, words in {
        "tensor": "HGMMA QGMMA IGMMA BGMMA HMMA IMMA QMMA BMMA DMMA OMMA",
        "lsu": "LDG LD LDGSTS STG ST ATOM ATOMG ATOMS RED REDG LDS LDSM STS STSM LDL STL SHFL",
        "xu": "MUFU F2F F2I I2F FRND POPC FLO BREV",
        "fma": "FADD FMUL FFMA IMAD HFMA2 HADD2 HMUL2 FSWZADD",
        "fp64": "DADD DMUL DFMA DSETP",
        "cbu": "BRA BRX EXIT CALL RET BSSY BSYNC BREAK WARPSYNC YIELD BMOV",
        "adu": "BAR VOTEU LDC",
        "tma": "UTMALDG UTMASTG UTMAREDG UBLKCP UTMAPF",
    }.items()
}
_OF_PIPE = {opcode: name for name, opcodes in PIPES.items() for opcode in opcodes}
_ATOMICS = frozenset(["ATOM", "ATOMG", "ATOMS", "RED", "REDG", "REDS"])
_BARRIERS = frozenset(["BAR", "UCGABAR_WAIT"])
_WAITS = frozenset(["DEPBAR", "SYNCS", "WARPGROUP"])
_GLOBAL = frozenset(["LDG", "LD", "LDGSTS", "STG", "ST", "ATOM", "ATOMG", "RED", "REDG"])
_POLICIES = frozenset(["EF", "EL", "LU", "EU", "NA", "BYPASS", "CONSTANT", "STRONG"])


def class_of(opcode: str) -> str:
    return _OF_OPCODE.get(opcode, _REST)


def pipe_of(opcode: str) -> str:
    if opcode in _OF_PIPE:
        return _OF_PIPE[opcode]
    return "uniform" if opcode.startswith("U") and opcode not in ("UCGABAR_ARV", "UCGABAR_WAIT") else "alu"


def work(
    function: SassFunction,
    sure: Any,
    beyond: Any,
    amount: Callable[..., Amount],
    found: WholeGrid,
    notes: tuple[str, ...],
) -> Work:
    """`sure` and `beyond`: (columns, instructions) for the whole grid."""

    def grouped(
        name_of: Callable[[SassInstruction], str | None], column: int = EXECUTED
    ) -> dict[str, Amount]:
        totals: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
        for ins in function.instructions:
            name = name_of(ins)
            low, more = float(sure[column, ins.place]), float(beyond[column, ins.place])
            if name is not None and (low or more):
                totals[name][0] += low
                totals[name][1] += low + more
        return {
            name: Amount(low=round(low), high=round(high)) for name, (low, high) in sorted(totals.items())
        }

    requests = COLUMNS.index("requests")
    return Work(
        instructions=amount("executed"),
        by_class=grouped(lambda ins: class_of(ins.opcode)),
        by_pipe=grouped(lambda ins: pipe_of(ins.opcode)),
        global_requests=amount("requests"),
        global_sectors=amount("sectors"),
        least_global_sectors=amount("least_sectors"),
        unknown_global_requests=amount("unknown_requests"),
        cache_policies=grouped(_policy, requests),
        shared_wavefronts=amount("wavefronts"),
        least_shared_wavefronts=amount("least_wavefronts"),
        unknown_shared_requests=amount("unknown_wavefronts"),
        spill_sectors=amount("local_sectors"),
        tma_bytes=amount("tma_bytes"),
        matrix_operations=_matrix_operations(grouped(_shape)),
        barriers=amount("executed", _BARRIERS),
        waits=amount("executed", _WAITS),
        atomics=amount("executed", _ATOMICS),
        trip_counts=_trip_counts(function, sure[EXECUTED]),
        exact=found.exact,
        programs_executed=found.executed,
        notes=notes,
    )


def _policy(ins: SassInstruction) -> str | None:
    if ins.opcode not in _GLOBAL:
        return None
    return " ".join(word for word in ins.modifiers if word in _POLICIES) or "default"


def _shape(ins: SassInstruction) -> str | None:
    if ins.opcode not in CLASSES["matrix"]:
        return None
    words = " ".join(word for word in ins.modifiers if word not in ("SP", "gsb0"))
    return f"{ins.opcode} {words}"


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
        found[" ".join([opcode, *words])] = Amount(low=amount.low * operations, high=amount.high * operations)
    return found


def _trip_counts(function: SassFunction, executed: Any) -> dict[str, float]:
    """A loop's head runs once for each entry and once for each backward branch that is taken."""
    found = {}
    for ins in function.instructions:
        if ins.opcode == "BRA" and ins.target is not None and ins.target < ins.place:
            head, before = ins.target, ins.target - 1
            entries = float(executed[before]) if before >= 0 else 0.0
            runs = float(executed[ins.place])
            if entries and runs:
                found[f"{function.instructions[head].address:#x}"] = round(runs / entries, 3)
    return found
