"""Small kernels in nvdisasm's words, and what is launched, without a toolchain."""

import re
import struct

import numpy as np

from irdiff.backends.nvidia.execution.warps import Warps
from irdiff.counted_work import NotCountedWork
from irdiff.execution.launch_facts import LaunchFacts
from irdiff.ir.sass import instructions
from irdiff.ir.sass.instructions import SassFunction
from irdiff.work import counting

PARAMETERS = 0x210


def function_of(lines: str, name: str = "k") -> SassFunction:
    """A kernel of these instructions; labels stand on lines of their own, as `.L_x_0:`."""
    rows = [line for line in map(str.strip, lines.splitlines()) if line]
    labels, texts = {name: 0}, []
    for line in rows:
        if line.endswith(":"):
            labels[line[:-1]] = len(texts)
        else:
            texts.append(line)

    def relative(place: int, text: str) -> str:
        return re.sub(r"`\((.*?)\)", lambda label: f".{(labels[label.group(1)] - place) * 16:+#x}", text)

    return instructions.read(name, [(relative(place, text), 0) for place, text in enumerate(texts)])


def facts(*parameters: int, grid=(1, 1, 1), warps=1, cluster=1, regions=()) -> LaunchFacts:
    """Parameters of 8 bytes each, from c[0x0][0x210] on."""
    bank = np.full(PARAMETERS + 8 * len(parameters) + 8, -1, dtype=np.int16)
    content = struct.pack(f"<{len(parameters)}q", *parameters)
    bank[PARAMETERS : PARAMETERS + len(content)] = np.frombuffer(content, dtype=np.uint8)
    return LaunchFacts(
        kernel="k", arch=90, grid=grid, cluster=cluster, warps=warps, constants={0: bank}, regions=tuple(regions),
        shared_bytes=65536, descriptors={},
    )  # fmt: skip


def counted(lines: str, launch: LaunchFacts):
    counted = counting.count_on(Warps(function_of(lines), launch))
    return counted if isinstance(counted, NotCountedWork) else counted.work
