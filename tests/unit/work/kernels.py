"""Small kernels in nvdisasm's text, and what is launched, without a toolchain."""

import struct

import numpy as np

from irdiff.work import count, sass
from irdiff.work.launch_facts import LaunchFacts

PARAMETERS = 0x210


def text_of(lines: str) -> str:
    """The text of nvdisasm of a kernel `k`; labels stand on lines of their own, as `.L_x_0:`."""
    rows, address = [], 0
    for line in filter(None, map(str.strip, lines.splitlines())):
        if line.endswith(":"):
            rows.append(line)
        else:
            rows.append(f"        /*{address:04x}*/                   {line} ;")
            address += 16
    return ".text.k:\n" + "\n".join(rows) + "\n"


def facts(*parameters: int, grid=(1, 1, 1), warps=1, cluster=1, regions=()) -> LaunchFacts:
    """Parameters of 8 bytes each, from c[0x0][0x210] on."""
    bank = np.full(PARAMETERS + 8 * len(parameters) + 8, -1, dtype=np.int16)
    content = struct.pack(f"<{len(parameters)}q", *parameters)
    bank[PARAMETERS : PARAMETERS + len(content)] = np.frombuffer(content, dtype=np.uint8)
    return LaunchFacts(
        kernel="k", grid=grid, cluster=cluster, warps=warps, constants={0: bank}, regions=tuple(regions),
        shared_bytes=65536, descriptors={},
    )  # fmt: skip


def counted(lines: str, launch: LaunchFacts):
    return count.count(sass.read(text_of(lines), "k"), launch)
