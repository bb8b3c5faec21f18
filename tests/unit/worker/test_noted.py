"""What a program does unseen, or asks where only a GPU knows, is named with its line."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

PROGRAM = """import sys
sys.audit("subprocess.Popen", None, ["/usr/bin/python3.11", "child.py"], None, None)
sys.audit("subprocess.Popen", "/bin/sh", ["/bin/sh", "-c", "python child.py"], None, None)
sys.audit("subprocess.Popen", "git", ["git", "rev-parse"], None, None)
sys.audit("os.fork")
sys.audit("import", "multiprocessing.popen_spawn_posix", None, None, None, None)
sys.audit("import", "multiprocessing.pool", None, None, None, None)
"""


def test_processes_that_a_program_starts_are_named(load: Callable[[str], Any], tmp_path: Path) -> None:
    noted = load("noted")
    noted.watch_files()
    noted.begin_files(str(tmp_path))
    exec(compile(PROGRAM, "bench/run.py", "exec"), {})
    exec(compile(PROGRAM, "/site-packages/torch/_inductor/cpu_vec_isa.py", "exec"), {})
    noted.end_files()
    sys.audit("os.fork")
    lines = [row.partition(" starts another Python process")[0] for row in noted.caveats()]
    assert lines == [f"bench/run.py:{number}" for number in (2, 3, 5, 6)]
