"""Mutants of the code that gives verdicts, gates and groups: `python -m tests.programs.mutants`.

mutmut changes one expression at a time in the functions of `SOURCES` and runs the unit tests of them. A mutant
that no test notices must be explained in `tests/data/mutants-explained.txt`, else this fails; an explanation
whose mutant is gone, or is noticed by now, fails too.

    FILE:FUNCTION
      - the line as it is
      + the line of the mutant
      why nothing can tell them apart
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
EXPLAINED = ROOT / "tests" / "data" / "mutants-explained.txt"
SOURCES = ("irdiff/compare/verdicts.py", "irdiff/gate/rules.py", "irdiff/group/*.py")
TESTS = (
    "tests/unit/compare/test_verdicts.py",
    "tests/unit/compare/test_comparer.py",
    "tests/unit/gate",
    "tests/unit/group",
)
_COPIED = ("irdiff", "tests", "corpus", "targets", "reports")
_CONFIG = f"""
[tool.mutmut]
source_paths = ["irdiff"]
only_mutate = {list(SOURCES)}
also_copy = ["corpus", "targets", "reports"]
pytest_add_cli_args_test_selection = {list(TESTS)}
pytest_add_cli_args = ["-p", "no:cacheprovider"]
use_git_change_detection = false
track_dependencies = false
"""
_KILLED = frozenset({"killed", "timeout", "segfault", "suspicious"})


@dataclass(frozen=True, kw_only=True, order=True)
class Mutant:
    """One changed expression, whatever number mutmut gives it."""

    function: str
    """`irdiff/compare/verdicts.py:judge`"""
    before: tuple[str, ...]
    after: tuple[str, ...]

    def __str__(self) -> str:
        rows = [f"  - {line}" for line in self.before] + [f"  + {line}" for line in self.after]
        return "\n".join([self.function, *rows])


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--only", default="*", help="names of mutants, as mutmut writes them")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        survived, killed = run(Path(folder), asked.jobs, asked.only)
    explained = read(EXPLAINED.read_text()) if EXPLAINED.exists() else {}
    unexplained = sorted(set(survived) - explained.keys())
    stale = sorted(explained.keys() - set(survived)) if asked.only == "*" else []
    for mutant in unexplained:
        print(f"survived, and nothing explains it:\n{mutant}\n")
    for mutant in stale:
        print(f"explained, and there is no such survivor:\n{mutant}\n")
    print(f"{killed} killed, {len(survived) - len(unexplained)} explained, {len(unexplained)} survived")
    return 1 if unexplained or stale else 0


def run(folder: Path, jobs: int, only: str) -> tuple[list[Mutant], int]:
    """The mutants that survive in a copy of the tree, and how many did not."""
    for name in _COPIED:
        ignored = shutil.ignore_patterns("__pycache__", ".*")
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    for name in ("README.md", "Makefile"):
        shutil.copy(ROOT / name, folder / name)
    (folder / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text() + _CONFIG)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [
        sys.executable,
        "-m",
        "mutmut",
        "run",
        "--max-children",
        str(jobs),
        *([only] if only != "*" else []),
    ]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"mutmut ended with {done.returncode}:\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    listed = subprocess.run(
        [sys.executable, "-m", "mutmut", "results", "--all", "true"],
        cwd=folder, env=environment, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    rows = [tuple(line.strip().rsplit(": ", 1)) for line in listed.splitlines() if "__mutmut_" in line]
    killed = sum(status in _KILLED for _, status in rows)
    names = [name for name, status in rows if status not in _KILLED and status != "not checked"]
    return [of_diff(name, diff) for name, diff in zip(names, _diffs(folder, names), strict=True)], killed


def _diffs(folder: Path, names: list[str]) -> list[str]:
    """What mutmut shows of each, asked for in one process: a start takes half a second."""
    code = (
        "import sys; from mutmut.__main__ import find_mutant, get_diff_for_mutant\n"
        "for name in sys.stdin.read().split():\n"
        "    print(get_diff_for_mutant(name, path=find_mutant(name).path) + '\\0', end='')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        input="\n".join(names),
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split("\0")[:-1]


def of_diff(name: str, diff: str) -> Mutant:
    """`irdiff.compare.verdicts.x_judge__mutmut_1` and a unified diff of its function."""
    place, _, function = name.partition("__mutmut_")[0].rpartition(".")
    function = function.removeprefix("xǁ").removeprefix("x_").replace("ǁ", ".")
    body = [line for line in diff.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    return Mutant(
        function=f"{place.replace('.', '/')}.py:{function}",
        before=tuple(line[1:].strip() for line in body if line[0] == "-"),
        after=tuple(line[1:].strip() for line in body if line[0] == "+"),
    )


def read(text: str) -> dict[Mutant, str]:
    """Each explained mutant with its reason. Raises ValueError for one without a reason."""
    found = {}
    for block in filter(None, map(str.strip, text.split("\n\n"))):
        function, *rows = [line.strip() for line in block.splitlines() if not line.startswith("#")] or [""]
        if not function:
            continue
        mutant = Mutant(
            function=function,
            before=tuple(row[2:] for row in rows if row.startswith("- ")),
            after=tuple(row[2:] for row in rows if row.startswith("+ ")),
        )
        reason = " ".join(row for row in rows if not row.startswith(("- ", "+ ")))
        if not reason:
            raise ValueError(f"no reason is given for\n{mutant}")
        found[mutant] = reason
    return found


if __name__ == "__main__":
    sys.exit(main())
