"""Counts the kernels that torch.compile launches on this GPU, and those that irdiff compares without one.

    python -m tests.programs.compiled_launches [PYTHON]     # an interpreter with torch for CUDA; default: this one

Prints both, kernel by kernel, without Inductor's numbers, and ends with 1 where they differ.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.programs.checkouts import commit, new_repository
from tests.programs.evidence import comparing
from tests.texts import TEXTS

PROGRAM = TEXTS / "gpu" / "compiled_block.py"
PROFILE = """
import json, runpy, sys, torch
with torch.profiler.profile() as profile:
    runpy.run_path(sys.argv[1])
    torch.cuda.synchronize()
on_gpu = torch.autograd.DeviceType.CUDA
major, minor = torch.cuda.get_device_capability()
print(json.dumps([f"sm_{major}{minor}", sorted({e.name for e in profile.events() if e.device_type == on_gpu})]))
"""


def main(python: str = sys.executable) -> int:
    written = re.findall(r"^def (\w+)\(.*tl\.constexpr", PROGRAM.read_text(), re.MULTILINE)
    done = subprocess.run([python, "-c", PROFILE, PROGRAM], capture_output=True, text=True, check=True)
    target, names = json.loads(done.stdout.splitlines()[-1])
    there = _without_numbers(name for name in names if name.startswith(("triton_", *written)))
    with tempfile.TemporaryDirectory() as scratch:
        repo = new_repository(Path(scratch, "repo"))
        shutil.copy(PROGRAM, repo / "block.py")
        commit(repo, "A block")
        words = ("--program", "block.py", "--python", python, "--target", target, "--no-cache")
        found = comparing.compare("HEAD", "HEAD", *words, cache=Path(scratch, "cache"), repo=repo)
    assert found.run, found.stderr
    here = _without_numbers({launch["kernel"] for launch in found.run["launches"].values()})
    for name in sorted(there | here):
        print(f"{there[name]:4} on the GPU  {here[name]:4} compared  {name}")
    print(f"{there.total():4} on the GPU  {here.total():4} compared, {len(written)} by hand: {target}")
    return int(there != here)


def _without_numbers(names) -> Counter:
    return Counter(re.sub(r"_\d+$", "", name) for name in names)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
