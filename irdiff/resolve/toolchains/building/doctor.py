"""What a native build of a revision needs, checked in seconds: a build finds out in an hour."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from irdiff.config import Config
from irdiff.resolve.toolchains import checkout as checkouts
from irdiff.resolve.toolchains.building import cxx_compiler
from irdiff.resolve.toolchains.checkout import Checkout

_NEEDED_DISK_BYTES = 6 << 30
"""A tree with its objects, the wheel, the environment and what ccache keeps; measured: 2.2 GB at -O1."""


@dataclass(frozen=True, kw_only=True)
class Prerequisite:
    topic: str
    is_met: bool
    is_required: bool
    text: str

    @property
    def line(self) -> str:
        state = "ok" if self.is_met else "missing" if self.is_required else "advised"
        return f"{state:8} {self.topic:13} {self.text}"


def examine(checkout: Checkout, config: Config) -> list[Prerequisite]:
    config.cache.mkdir(parents=True, exist_ok=True)
    return [
        Prerequisite(topic=topic, is_met=is_met, is_required=topic != "ccache", text=text)
        for topic, is_met, text in _examined(checkout, config)
    ]


def works(found: list[Prerequisite]) -> bool:
    return all(row.is_met or not row.is_required for row in found)


def _examined(checkout: Checkout, config: Config) -> Iterator[tuple[str, bool, str]]:
    """(topic, whether it is met, what was found)."""
    caller = config.tool_environment
    requirements = {re.split(r"[^\w-]", wanted)[0] for wanted in checkouts.build_requirements(checkout)}
    for name in ("cmake", "ninja"):
        own = "one of the build's requirements, installed for it" if name in requirements else None
        path = own or shutil.which(name, path=caller.get("PATH"))
        yield name, path is not None, path or f"not found: install {name}"
    run = cxx_compiler.chosen(caller)
    found = f"{run.version} ({run.path})" if run.path else "not found: install one, or set CXX"
    yield "C++ compiler", run.path is not None, found
    pin = (checkout.llvm or "none")[:12]
    if "LLVM_SYSPATH" in caller:
        folder = Path(caller["LLVM_SYSPATH"])
        missing = cxx_compiler.missing_of_llvm(folder)
        text = f"{cxx_compiler.llvm_title(folder)} in {folder}, the checkout pins {pin}"
        text = f"LLVM_SYSPATH={folder} has no {', '.join(missing)}" if missing else text
        yield "LLVM", not missing, text
    else:
        yield "LLVM", True, f"{pin}, downloaded by the build, once (or set LLVM_SYSPATH=DIR)"
    free_bytes = shutil.disk_usage(config.cache).free
    text = f"{free_bytes / 1e9:.0f} GB free in {config.cache}, {_NEEDED_DISK_BYTES / 1e9:.0f} needed"
    yield "disk", free_bytes >= _NEEDED_DISK_BYTES, text
    ccache = shutil.which("ccache", path=caller.get("PATH"))
    yield "ccache", ccache is not None, ccache or "not installed: every build compiles every file"
