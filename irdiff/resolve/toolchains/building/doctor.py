"""What a native build of a revision needs, checked in seconds: a build finds out in an hour."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from irdiff.config import Config
from irdiff.resolve.toolchains import checkout as checkouts
from irdiff.resolve.toolchains.building import compiler
from irdiff.resolve.toolchains.checkout import Checkout

_NEEDED_DISK_BYTES = 6 << 30
"""A tree with its objects, the wheel, the environment and what ccache keeps; measured: 2.2 GB at -O1."""


@dataclass(frozen=True, kw_only=True)
class Prerequisite:
    topic: str
    is_met: bool
    is_required: bool
    text: str


def examine(checkout: Checkout, config: Config) -> list[Prerequisite]:
    caller = config.tool_environment
    run = compiler.chosen(caller)
    ccache = shutil.which("ccache", path=caller.get("PATH"))
    config.cache.mkdir(parents=True, exist_ok=True)
    free_bytes = shutil.disk_usage(config.cache).free
    return [
        *(_program(name, checkout, caller) for name in ("cmake", "ninja")),
        Prerequisite(
            topic="C++ compiler",
            is_met=run.path is not None,
            is_required=True,
            text=f"{run.version} ({run.path})" if run.path else "not found: install one, or set CXX",
        ),
        _llvm(checkout, caller),
        Prerequisite(
            topic="disk",
            is_met=free_bytes >= _NEEDED_DISK_BYTES,
            is_required=True,
            text=f"{free_bytes / 1e9:.0f} GB free in {config.cache}, {_NEEDED_DISK_BYTES / 1e9:.0f} needed",
        ),
        Prerequisite(
            topic="ccache",
            is_met=ccache is not None,
            is_required=False,
            text=ccache or "not installed: every build compiles every file",
        ),
    ]


def works(found: list[Prerequisite]) -> bool:
    return all(row.is_met or not row.is_required for row in found)


def _program(name: str, checkout: Checkout, caller: Mapping[str, str]) -> Prerequisite:
    names = {re.split(r"[^\w-]", wanted)[0] for wanted in checkouts.build_requirements(checkout)}
    path = "one of the build's requirements, installed for it" if name in names else None
    path = path or shutil.which(name, path=caller.get("PATH"))
    return Prerequisite(
        topic=name, is_met=path is not None, is_required=True, text=path or f"not found: install {name}"
    )


def _llvm(checkout: Checkout, caller: Mapping[str, str]) -> Prerequisite:
    """setup.py takes the folder of `LLVM_SYSPATH`, what it downloaded before, or downloads its pin."""
    pin = (checkout.llvm or "none")[:12]
    missing: list[str] = []
    if "LLVM_SYSPATH" in caller:
        folder = Path(caller["LLVM_SYSPATH"])
        missing = compiler.missing_of_llvm(folder)
        text = f"{compiler.llvm_title(folder)} in {folder}, the checkout pins {pin}"
        text = f"LLVM_SYSPATH={folder} has no {', '.join(missing)}" if missing else text
    else:
        home = Path(caller.get("TRITON_HOME") or caller.get("HOME") or "/")
        kept = sorted((home / ".triton" / "llvm").glob(f"llvm-{pin[:8]}*"))
        text = f"{pin}, " + (f"in {kept[0]}" if kept else "downloaded by the build (or set LLVM_SYSPATH=DIR)")
    return Prerequisite(topic="LLVM", is_met=not missing, is_required=True, text=text)


def lines(found: list[Prerequisite]) -> list[str]:
    """A table of one line a prerequisite."""
    states = {(True, True): "ok", (True, False): "ok", (False, True): "missing", (False, False): "advised"}
    return [f"{states[row.is_met, row.is_required]:8} {row.topic:13} {row.text}" for row in found]
