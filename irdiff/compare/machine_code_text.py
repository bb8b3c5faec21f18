"""The text of NVIDIA's machine code, by the disassembler of a side's toolchain."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path

from irdiff import process
from irdiff.backends import nvidia
from irdiff.model import Toolchain

_TIMEOUT_S = 120.0


class MachineCodeText:
    """Thread-safe."""

    def __init__(self, content: Callable[[str], bytes], packages: Sequence[str]) -> None:
        """content: of an artifact, by its digest; packages: the folders of `triton`, the newest last."""
        paths = [Path(each) / "backends" / nvidia.FOLDER / "bin" / "nvdisasm" for each in packages]
        self._programs = [path for path in paths if path.is_file()]
        self._content = content
        self._text = lru_cache(maxsize=8)(self._disassembled)

    def of(self, digest: str) -> str | None:
        """None where no disassembler is there, or none can read it."""
        return self._text(digest)

    def _disassembled(self, digest: str) -> str | None:
        with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
            file.write(self._content(digest))
            file.flush()
            for program in reversed(self._programs):  # a newer one knows the architectures of older ones, too
                try:
                    return process.run(
                        [program, "-c", file.name], env={"LC_ALL": "C.UTF-8"}, timeout_s=_TIMEOUT_S
                    )
                except (process.CommandFailed, process.TimeoutExpired, OSError):
                    continue
        return None


def newest_last(*toolchains: Toolchain) -> list[str]:
    """The folders of their packages."""
    return [
        each.root
        for each in sorted(toolchains, key=lambda each: [int(n) for n in re.findall(r"\d+", each.version)])
    ]
