"""What Triton asks of LLVM and of ptxas for one launch, from what is recorded of the launch.

Triton's own calls, as its releases 3.5 to 3.9 make them (`translateLLVMIRToASM` and `createTargetMachine`
of `python/src/llvm.cc`; `make_ptx`, `make_cubin`, `make_amdgcn` of each `backends/*/compiler.py`): code
generation alone, at the aggressive level, position independent, with traps for what is unreachable;
multiplications and additions are fused where the launch allows it. All that is optimized or linked
(libdevice, ocml) is so in the LLVM IR already. Two things are taken from the PTX that the launch has: the ISA
version in its header, and the processor.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from irdiff.model import Launch, Target

_HEADER = re.compile(r"^\.version (\d+)\.(\d+)\n\.target (\w+)", re.M)
_OLD_AMD = re.compile(r"gfx1[12]")
_MAX_PTX = ((3, 7), 90, 86)
"""Triton asks LLVM for no newer PTX than this, from 3.7 on and before."""
_MAD_WIDE_SINCE = (3, 7)
_TRUE16_UNTIL = (3, 8)
_ALLOCATION_SINCE = (3, 7)
_CHECKED_SINCE = (3, 8)


@dataclass(frozen=True, kw_only=True)
class LlvmCall:
    """What LLVM is asked for: all that its result depends on, apart from the text."""

    triple: str
    processor: str
    fuses: bool
    features: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    """Switches of LLVM's, without dashes."""
    ptx: int | None = None
    """The newest PTX that may be written, as 86 for 8.6."""
    header: tuple[str, str] | None = None
    """What Triton writes over the `.version` and `.target` of PTX."""


def llvm_call(launch: Launch, target: Target, version: str, ptx: str | None) -> LlvmCall:
    """As Triton `version` calls LLVM for a launch, whose PTX is given where it is NVIDIA's.

    Raises ValueError where that PTX has no header.
    """
    release = _release(version)
    fuses = _fuses(launch)
    if target.backend != "cuda":
        arch = str(target.arch)
        features = ("-real-true16",) if _OLD_AMD.match(arch) and release <= _TRUE16_UNTIL else ()
        return LlvmCall(triple="amdgcn-amd-amdhsa", processor=arch, features=features, fuses=fuses)
    found = _HEADER.search(ptx or "")
    if not found:
        raise ValueError("the PTX of the release has no header with its version and target")
    since, new, old_limit = _MAX_PTX
    flags = ["nvptx-short-ptr"]
    flags += ["nvptx-mad-wide-opt"] if release >= _MAD_WIDE_SINCE else []
    flags += ["nvptx-sched4reg"] if launch.options.get("sched4reg") == "True" else []
    return LlvmCall(
        triple="nvptx64-nvidia-cuda",
        processor=found[3],
        ptx=min(new if release >= since else old_limit, int(found[1] + found[2])),
        flags=tuple(flags),
        fuses=fuses,
        header=(f"{found[1]}.{found[2]}", found[3]),
    )


def ptxas_flags(launch: Launch, version: str, ptx: str) -> tuple[str, ...]:
    """As Triton `version` calls ptxas for a launch. Raises ValueError where the PTX has no header."""
    found = _HEADER.search(ptx)
    if not found:
        raise ValueError("the PTX has no header with its target")
    release, extra = _release(version), launch.options.get("ptx_options", "None")
    modes = launch.options.get("instrumentation_mode", "")
    checked = release >= _CHECKED_SINCE and any(mode in modes for mode in ("consan", "fpsan"))
    return (
        "-lineinfo",
        *(() if _fuses(launch) else ("--fmad=false",)),
        "-v",
        *(["--regAllocOptLevel=2"] if release >= _ALLOCATION_SINCE else []),
        *(extra.split(" ") if extra not in ("None", "") else ()),
        *(["--opt-level", "1"] if checked else []),
        f"--gpu-name={found[3]}",
    )


def as_triton_writes(ptx: str, call: LlvmCall) -> str:
    """PTX with Triton's own last changes: the header, and no debug flag, which would keep ptxas from
    optimizing.
    """
    assert call.header is not None
    version, processor = call.header
    ptx = re.sub(r"\.version \d+\.\d+", f".version {version}", ptx)
    ptx = re.sub(r"\.target sm_\w+", f".target {processor}", ptx)
    return re.sub(r",\s*debug|debug,\s*", "", ptx)


def _fuses(launch: Launch) -> bool:
    return launch.options.get("enable_fp_fusion", "True") == "True"


def _release(version: str) -> tuple[int, int]:
    found = re.match(r"(\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else (99, 0)
