"""Compares what launchers receive. Pure.

Triton writes into one table what the launcher and the loader read (shared memory, warps, clusters, scratch
memory, tensor descriptors, …) and every option of the compiler. An entry that is not listed here counts: a
later release may have its launcher read it. The lists are those of releases 3.2 to 3.9, read from
`CompiledKernel`, the launchers in `backends/*/driver.py` and the options in `backends/*/compiler.py`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from irdiff.backends import BACKENDS
from irdiff.compare import runtime
from irdiff.compare.runtime import Runtime
from irdiff.model import Compiled, Sides

SCRATCH = "scratch"
"""The worker's own entry: the memory that the program's allocator gives a kernel that wants scratch
memory."""

# fmt: off
NEUTRAL = frozenset({
    "name",  # how the loader finds the kernel; each side has its own
    "hash",  # key of Triton's cache
    "triton_version",
    # what the frontend accepts, and its defaults; assertions and overflow checks: they end in the IR
    "allowed_dot_input_precisions", "default_dot_input_precision", "deprecated_fp8_dot_operand_dtypes",
    "max_num_imprecise_acc_default", "sanitize_overflow", "supported_fp8_dtypes", "debug",
    # what code is made for; `target`, which the launch reads, counts
    "arch", "backend_name", "base_arch",
    # how code is made: it is compared as code
    "enable_fp_fusion", "fpsan_homomorphic_casts", "ir_override", "llvm_fn_attrs", "num_buffers_warp_spec",
    "num_consumer_groups", "num_stages", "reg_dec_producer", "reg_inc_consumer",
    *(name for backend in BACKENDS.values() for name in backend.NEUTRAL),
    "extern_libs",  # linked into the code
    "min_shared_mem",  # raises `shared`, which counts
})
"""Entries that the launcher and the loader do not read, or whose effect is compared elsewhere; next to them
stand variables of the environment, in upper case, which are part of the key of Triton's own cache."""
_LAUNCHER = re.compile(r"/(?:driver\.(?:py|c)|compiler/(?:compiler|make_launcher)\.py|runtime/jit\.py)$")
"""Files that take what the backend packs."""
_OF_THE_CODE = frozenset({
    "num_warps", "shared", "tmem_size", "global_scratch_size", "global_scratch_align",
    "profile_scratch_size", "profile_scratch_align", "tensordesc_meta",
})
"""Entries that the compiler derives from the IR: where the IR differs, they may differ with it."""
_UNWRITTEN: Mapping[str, object] = {
    "num_ctas": 1, "tmem_size": 0, "tensordesc_meta": [],
    "global_scratch_size": 0, "global_scratch_align": 1,
    "profile_scratch_size": 0, "profile_scratch_align": 1,
    "launch_cooperative_grid": False, "launch_pdl": False,
    "instrumentation_mode": "",  # the launcher of 3.8 and later passes more arguments for some modes
}
"""The value that a launcher passes if its release does not write the entry: it is built in."""
# fmt: on


def packed_differs(both: Sides[Compiled], runtimes: Sides[Runtime], backend: str) -> tuple[str, ...]:
    """`packed` where the backends pack something else for the launcher.

    Launchers of two releases may take different things: values of another number are compared only where the
    launchers are the same files. Where they are not, the run's notes say that the runtime differs.
    """
    launchers = runtimes.map(_launchers)
    ours, theirs = (side.launcher_args.get("packed") for side in both)
    if ours == theirs or None in (ours, theirs):
        return ()
    is_alike = isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs)
    return ("packed",) if is_alike or not runtime.differing(launchers, {backend}) else ()


def _launchers(runtime: Runtime) -> Runtime:
    return {name: file for name, file in runtime.items() if _LAUNCHER.search(name)}


def beyond_code(differing: Collection[str]) -> bool:
    """Returns True if a difference in what the launcher receives is not explained by any difference of the
    code.

    differing: names of entries, `symbol`, and `packed`, a tuple of values of the entries.
    """
    return bool({*differing} - _OF_THE_CODE - ({"packed"} if _OF_THE_CODE.intersection(differing) else set()))


def metadata_differing(base: Mapping[str, object], head: Mapping[str, object]) -> tuple[str, ...]:
    """Names of the entries that a launch passes on and that differ, in order.

    An entry that one side does not write counts as what that side's launcher passes without it. Where that
    is not known, it differs from every value.
    """
    ours, theirs = _passed(base), _passed(head)
    missing = object()
    names = sorted({*ours, *theirs})
    return tuple(name for name in names if ours.get(name, missing) != theirs.get(name, missing))


def _passed(metadata: Mapping[str, object]) -> dict[str, object]:
    written = {
        name: value
        for name, value in metadata.items()
        if not (name.isupper() or name in NEUTRAL or (value is None and name in _UNWRITTEN))
    }
    passed = {**_UNWRITTEN, **written}
    # Until 3.5 the cluster has an entry of its own; since then it is `num_ctas` blocks along the first axis.
    passed.setdefault("cluster_dims", [passed["num_ctas"], 1, 1])
    # Until 3.4 some launchers have the width of a warp built in.
    target = passed.get("target")
    if isinstance(target, Mapping) and "warp_size" in target:
        passed.setdefault("warp_size", target["warp_size"])
    return passed
