"""The text of NVIDIA's machine code, by the nvdisasm of a toolchain."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable
from pathlib import Path

from irdiff import process
from irdiff.backends import nvidia
from irdiff.backends.nvidia import encodings
from irdiff.model import Toolchain

_TIMEOUT_S = 120.0


IN_PACKAGE = Path("backends", nvidia.FOLDER, "bin", "nvdisasm")
"""Where a package `triton` has its nvdisasm."""


def programs(packages: Iterable[str]) -> list[Path]:
    """The nvdisasm of each folder of `triton` that has one."""
    return [path for each in packages if (path := Path(each) / IN_PACKAGE).is_file()]


def disassembled(program: Path, content: bytes, *options: str) -> str:
    """Output of nvdisasm. Raises CommandFailed, TimeoutExpired, OSError."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(content)
        file.flush()
        command: list[str | Path] = [program, *options, "-c", file.name]
        return process.run(command, env={"LC_ALL": "C.UTF-8"}, timeout_s=_TIMEOUT_S)


def is_same_but_for_control_bits(base: bytes, head: bytes) -> bool:
    """Compares the executable contracts of two binaries. Raises NormalizeError."""
    return encodings.is_same_but_for_control_bits(base, head)


def newest_last(*toolchains: Toolchain) -> list[str]:
    """The folders of their packages."""
    return [
        each.root
        for each in sorted(toolchains, key=lambda each: [int(n) for n in re.findall(r"\d+", each.version)])
    ]
