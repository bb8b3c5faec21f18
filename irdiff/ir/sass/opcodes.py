"""Opcodes of SASS by what an interpreter has to do for them."""

BRANCHES = frozenset({"BRA", "EXIT", "BRX", "CALL", "RET", "JMP", "BPT", "KILL", "BRXU"})
GLOBAL = frozenset({"LDG", "STG", "ATOMG", "REDG", "LD", "ST", "ATOM", "RED", "LDGSTS"})
SHARED = frozenset({"LDS", "STS", "ATOMS", "LDSM", "STSM", "LDGSTS"})
LOCAL = frozenset({"LDL", "STL"})
MEMORY = GLOBAL | SHARED | LOCAL
MATRIX_FROM_SHARED = frozenset({"HGMMA", "QGMMA", "IGMMA"})
"""Their right sides, and some of their left ones, lie in shared memory."""
MEET = frozenset({"BSYNC", "WARPSYNC", "BAR"})
"""Lanes of a warp wait for each other there."""
