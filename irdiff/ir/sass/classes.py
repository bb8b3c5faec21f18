"""Classes and pipes of SASS instructions.

Pipes as Nsight Compute names them for compute capability 9.0 ("Pipelines" in its documentation); which opcode
runs where was read from the counters `smsp__inst_executed_pipe_*` of kernels whose counts are known.
"""

from __future__ import annotations

from collections.abc import Mapping

CLASSES: Mapping[str, frozenset[str]] = {
    name: frozenset(words.split())
    for name, words in {
        "matrix": "HGMMA QGMMA IGMMA BGMMA HMMA IMMA QMMA BMMA DMMA OMMA UTCHMMA UTCQMMA UTCIMMA UTCOMMA",
        "global load": "LDG LD LDGSTS",
        "global store": "STG ST",
        "atomic": "ATOM ATOMG ATOMS RED REDG REDS",
        "shared load": "LDS LDSM",
        "shared store": "STS STSM",
        "spill": "LDL STL",
        "tensor memory load": "LDTM",
        "tensor memory store": "STTM UTCCP",
        "bulk copy": "UTMALDG UTMASTG UTMAREDG UBLKCP UTMAPF",
        "barrier": "BAR UCGABAR_ARV UCGABAR_WAIT SYNCS WARPGROUP WARPSYNC UTCBAR",
        "fence": "MEMBAR FENCE ERRBAR CGAERRBAR CCTL",
        "wait": "DEPBAR LDGDEPBAR UTMACMDFLUSH NANOSLEEP",
        "float": (
            "FADD FMUL FFMA FADD2 FMUL2 FFMA2 FHADD FHFMA FMNMX FMNMX3 FSETP FSET FSEL FSWZADD"
            " HADD2 HMUL2 HFMA2 HSETP2 HSET2 HMNMX2 VHMNMX DADD DMUL DFMA DMNMX DSETP FCHK"
        ),
        "special function": "MUFU",
        "conversion": "F2F F2I I2F I2FP F2FP FRND I2I",
        "warp exchange": "SHFL VOTE VOTEU MATCH REDUX CREDUX ELECT R2UR",
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
OTHERS = frozenset({
    "BMSK", "UBMSK", "IDP", "IDP4A", "LEPC", "MOVM", "PSETP", "SZEXT", "UP2UR", "UR2UP", "USETMAXREG",
    "UTCATOMSWS", "VIMNMX3",
})  # fmt: skip
"""Without a class of their own, and not computed."""
_PIPES_ARE_OF = 90
_OF_PIPE = {opcode: name for name, opcodes in PIPES.items() for opcode in opcodes}
ATOMICS = frozenset(["ATOM", "ATOMG", "ATOMS", "RED", "REDG", "REDS"])
BARRIERS = frozenset(["BAR", "UCGABAR_WAIT"])
WAITS = frozenset(["DEPBAR", "SYNCS", "WARPGROUP"])
GLOBAL = frozenset(["LDG", "LD", "LDGSTS", "STG", "ST", "ATOM", "ATOMG", "RED", "REDG"])
POLICIES = frozenset(["EF", "EL", "LU", "EU", "NA", "BYPASS", "CONSTANT", "STRONG"])


def has_class(opcode: str) -> bool:
    return opcode in _OF_OPCODE


def class_of(opcode: str) -> str:
    return _OF_OPCODE.get(opcode, _REST)


def pipe_of(opcode: str, arch: int) -> str | None:
    """None where no counter has told pipes apart."""
    if arch != _PIPES_ARE_OF:
        return None
    if opcode in _OF_PIPE:
        return _OF_PIPE[opcode]
    return "uniform" if opcode.startswith("U") and opcode not in ("UCGABAR_ARV", "UCGABAR_WAIT") else "alu"
