from __future__ import annotations

from irdiff.resolve.toolchains import install_progress
from irdiff.resolve.toolchains.install_progress import InstallProgress

LINES = """\
Using Python 3.11.7 environment at: uvt
Resolved 2 packages in 450ms
Downloading triton (150.0MiB)
Downloading setuptools (50.0MiB)
Downloaded setuptools
Downloaded triton
Prepared 2 packages in 2.76s
Installed 2 packages in 109ms
Bytecode compiled 1460 files in 34.32s
 + triton==3.9.0
""".splitlines()


def test_sizes_and_an_estimate() -> None:
    told: list[str] = []
    times = iter([0.0, 1.0, 11.0, 41.0])
    with install_progress.telling(told.append):
        progress = InstallProgress("triton-3.9.0", lambda: next(times))
        for line in LINES:
            progress.line(line)
    assert told == [
        "installing triton-3.9.0: downloaded 0/150 MiB",
        "installing triton-3.9.0: downloaded 0/200 MiB",
        "installing triton-3.9.0: downloaded 50/200 MiB, about 30 s left",
        "installing triton-3.9.0: downloaded 200/200 MiB",
        "installing triton-3.9.0: unpacked",
        "installing triton-3.9.0: in place, compiling its byte code",
    ]


def test_nobody_is_told_outside_of_the_block() -> None:
    progress = InstallProgress("triton-3.9.0")
    for line in LINES:
        progress.line(line)
