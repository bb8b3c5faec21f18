"""Names of operations that synchronize, in all IRs that are read as programs. Pure."""

from __future__ import annotations

import re

ONLY_WAITS = re.compile(
    # PTX
    r"bar\.sync$|barrier(?:\.cta)?\.sync(?:\.aligned)?$|fence\b|membar\b|wgmma\.fence|wgmma\.wait_group"
    r"|cp\.async\.(?:bulk\.)?wait_\w+|tcgen05\.(?:fence|wait)|griddepcontrol\.wait"
    # AMD's assembly, and `fence` of LLVM IR
    r"|s_barrier$|s_sleep|s_nop|buffer_(?:wbl2|inv|gl\d_inv)|global_(?:wb|inv)|fence "
    # intrinsics of LLVM IR
    r"|llvm\.nvvm\.(?:barrier\.cta\.sync\.aligned\.all|barrier0|fence|membar|wgmma\.(?:fence|wait)"
    r"|cp\.async\.(?:bulk\.)?wait|tcgen05\.(?:fence|wait)|griddepcontrol\.wait)"
    r"|llvm\.amdgcn\.(?:s\.barrier|fence|s\.waitcnt|sched|iglp|s\.setprio|s\.sleep|wait\.asyncmark)"
)
"""Synchronization that only waits, or only makes writes known: one more of it changes no result, where all
threads reach it that it waits for."""
WAIT_IN_LLVM_IR = "llvm.amdgcn.s.waitcnt"
"""AMD's wait, which orders like a fence without being called one."""
