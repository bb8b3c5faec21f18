"""Edits that break kernels, planted in real TTGIR of 3.9.0 and compiled onward: what is said of the assembly.

`python -m tests.programs.effect_ttgir PYTHON` takes the interpreter of an installed Triton 3.9.0, compiles each
artifact and each edit of it from TTGIR on, and prints a row for each edit. None may be the same.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from functools import cache

from irdiff import effects
from irdiff.model import Meaning
from irdiff.texts import canonicalize
from tests.programs.mutation.artifacts import of_stage

_COMPILE = """
import json, sys, tempfile
from pathlib import Path
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import compile
target, text = json.load(sys.stdin)
file = Path(tempfile.mkdtemp(), "k.ttgir")
file.write_text(text)
made = compile(str(file), target=GPUTarget("cuda", 90, 32) if target == "sm_90" else GPUTarget("hip", target, 64))
print(made.asm["ptx" if target == "sm_90" else "amdgcn"])
"""
_M, _S, _F = "mask or address", "synchronization", "floating point"
EDITS: list[tuple[str, str, str, str, int]] = [
    (_M, "softmax sm_90", r"arith\.cmpi slt", "arith.cmpi sle", 1),
    (_M, "vector_add sm_90", r"arith\.cmpi slt", "arith.cmpi sle", 1),
    (_M, "vector_add sm_90", r"(tt\.store %\w+, %\w+), %\w+ :", r"\1 :", 1),
    (_M, "vector_add gfx942", r"arith\.cmpi slt", "arith.cmpi sle", 1),
    (_M, "softmax gfx942", r"arith\.cmpi slt", "arith.cmpi sle", 1),
    (_M, "special_functions sm_90", r"arith\.cmpi slt", "arith.cmpi sle", 1),
    (_M, "matmul sm_90", r"arith\.cmpi slt", "arith.cmpi sle", 0),
    (_M, "attention sm_90", r"arith\.cmpi sge", "arith.cmpi sgt", 0),
    (_M, "gluon_add sm_90", r"arith\.cmpi slt", "arith.cmpi sle", 1),
    (_M, "matmul gfx942", r"arith\.cmpi slt", "arith.cmpi sle", 0),
    (_M, "special_functions gfx942", r"arith\.cmpi slt", "arith.cmpi sle", 1),
    (_S, "matmul sm_90", r"(ttg\.async_wait .*num = )(\d+)", r"\g<1>5", 1),
    (_S, "attention sm_90", r"(ttg\.async_wait .*num = )(\d+)", r"\g<1>5", 1),
    (_S, "two_ctas sm_90", r"(ttg\.async_wait .*num = )(\d+)", r"\g<1>5", 1),
    (_S, "warp_specialized sm_90", r"\n *ttng\.arrive_barrier[^\n]*", "", 1),
    (_S, "descriptor sm_90", r"(ttng\.barrier_expect %\w+, )(\d+)", r"\g<1>64", 1),
    (_S, "atomics sm_90", r"acq_rel", "relaxed", 1),
    (_S, "atomics gfx942", r"acq_rel", "relaxed", 1),
    (_S, "descriptor sm_90", r"\n *ttng\.wait_barrier[^\n]*", "", 1),
    (_S, "matmul sm_90", r"(warp_group_dot_wait .*pendings = )\d", r"\g<1>3", 1),
    (_S, "attention sm_90", r"(warp_group_dot_wait .*pendings = )\d", r"\g<1>3", 1),
    (_S, "descriptor sm_90", r"(async_tma_store_wait .*pendings = )\d", r"\g<1>3", 1),
    (_S, "descriptor sm_90", r"(init_barrier %\w+, )1", r"\g<1>2", 1),
    (_S, "warp_specialized sm_90", r"\n *ttng\.wait_barrier[^\n]*", "", 1),
    (_S, "atomics sm_90", r"(tt\.atomic_rmw .*)gpu", r"\1cta", 1),
    (_F, "vector_add sm_90", r"arith\.addf", "arith.subf", 1),
    (_F, "vector_add gfx942", r"arith\.addf", "arith.mulf", 1),
    (_F, "softmax sm_90", r"arith\.maxnumf", "arith.minnumf", 1),
    (_F, "softmax gfx942", r"arith\.subf (%\w+), (%\w+)", r"arith.subf \2, \1", 1),
    (_F, "attention sm_90", r"arith\.mulf", "arith.addf", 1),
    (_F, "attention gfx942", r"arith\.mulf", "arith.addf", 1),
    (_F, "calls sm_90", r"arith\.mulf", "arith.divf", 1),
    (_F, "special_functions sm_90", r"arith\.divf (%\w+), (%\w+)", r"arith.divf \2, \1", 1),
    (_F, "special_functions gfx942", r"arith\.addf", "arith.mulf", 1),
    (_F, "scans sm_90", r"arith\.addf", "arith.maxnumf", 1),
]


@cache
def _compiled(python: str, target: str, text: str) -> str:
    asked = json.dumps([target, text])
    done = subprocess.run([python, "-c", _COMPILE], input=asked, capture_output=True, text=True, check=False)
    return done.stdout if not done.returncode else f"fails: {done.stderr.strip().splitlines()[-1][:150]}"


def main() -> None:
    counts: Counter[tuple[str, str]] = Counter()
    for kind, artifact, pattern, replacement, count in EDITS:
        kernel, target = artifact.split()
        (base,) = (each.text for each in of_stage("ttgir", release="3.9.0", kernel=kernel, target=target))
        head, made = re.subn(pattern, replacement, base, count=count)
        if head == base:
            print(f"{kind}, {artifact}, {pattern}: no place for it ({made})")
            continue
        stage = "ptx" if target == "sm_90" else "amdgcn"
        texts = [_compiled(sys.argv[1], target, text) for text in (base, head)]
        if any(text.startswith("fails") for text in texts):
            print(f"{kind}, {artifact}, {pattern}: {texts}"[:300])
            continue
        lines = [canonicalize(stage, text).lines for text in texts]
        found = effects.compare(stage, *lines)
        counts[kind, found.kind] += 1
        is_same = (
            "the same assembly"
            if lines[0] == lines[1]
            else f"{found.kind}: {found.said[0] if found.said else ''}"
        )
        print(f"{kind}, {artifact}, {pattern} → {replacement}: {is_same}", flush=True)
    print(
        dict(counts),
        "the same:",
        sum(n for (_, found), n in counts.items() if found is Meaning.SAME),
    )


if __name__ == "__main__":
    main()
