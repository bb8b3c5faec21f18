"""ptxas, the assembler of PTX. Source: `make_cubin` of `backends/nvidia/compiler.py`, 3.5 to 3.9."""

from __future__ import annotations

import re

from irdiff.backends.code_generation import Lowered, fuses, release
from irdiff.model import Launch

NAME = "ptxas"
BACKEND = "cuda"
VERSION = re.compile(r"\bV(\d+\.\d+\.\d+)")
ERROR = re.compile(r"^ptxas [^\n]*?(?:error|fatal)\s*:\s*([^\n]*)", re.M)
UNKNOWN_PROCESSOR = "is not defined for option 'gpu-name'"
NEWER_THAN_ALL = ".version 99.9\n.target sm_80\n.address_size 64\n"
NEWER_THAN_ALL_FLAGS: tuple[str, ...] = ("--gpu-name=sm_80",)
HEADER = re.compile(r"^\.version (\d+)\.(\d+)\n\.target (\w+)", re.M)
_NEWEST_ISA = re.compile(rb"current version is '(\d+)\.(\d+)'")
_ALLOCATION_SINCE = (3, 7)
_CHECKED_SINCE = (3, 8)


def newest_isa(printed: bytes) -> int | None:
    match = _NEWEST_ISA.search(printed)
    return int(match[1] + match[2]) if match else None


def flags(launch: Launch, version: str, assembly: str) -> tuple[str, ...]:
    header = HEADER.search(assembly)
    if not header:
        raise ValueError("the PTX has no header with its target")
    extra = launch.options.get("ptx_options", "None")
    modes = launch.options.get("instrumentation_mode", "")
    checked = release(version) >= _CHECKED_SINCE and any(mode in modes for mode in ("consan", "fpsan"))
    return (
        "-lineinfo",
        *(() if fuses(launch) else ("--fmad=false",)),
        "-v",
        *(["--regAllocOptLevel=2"] if release(version) >= _ALLOCATION_SINCE else []),
        *(extra.split(" ") if extra not in ("None", "") else ()),
        *(["--opt-level", "1"] if checked else []),
        f"--gpu-name={header[3]}",
    )


def lowered(text: bytes, newest: int | None) -> Lowered | None:
    """Triton writes the header by the ptxas it runs, so an older one would be given an older header by Triton
    too. What the text uses of the newer ISA is still refused.
    """
    before, directive, rest = text.partition(b".version ")
    line, end, rest = rest.partition(b"\n")
    version = line.strip().replace(b".", b"")
    if newest is None or not directive or not version.isdigit() or int(version) <= newest:
        return None
    now = f"{newest // 10}.{newest % 10}"
    return Lowered(before + directive + now.encode() + end + rest, line.decode().strip(), now)
