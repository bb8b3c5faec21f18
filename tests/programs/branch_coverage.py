"""Branch coverage of the steps that decide, by unit tests alone: `python -m tests.programs.branch_coverage`.

Fails where less than 90 % of the branches of one of them are taken.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
STEPS = ("attribute", "capture", "compare", "compile")
LEAST_PERCENT = 90.0


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        found = measured(Path(folder))
    for step, (lines, branches) in found.items():
        print(f"{step:10} {lines:5.1f} % of lines  {branches:5.1f} % of branches")
    short = [step for step, (_, branches) in found.items() if branches < LEAST_PERCENT]
    if short:
        print(f"less than {LEAST_PERCENT:g} % of branches: {', '.join(short)}")
    return 1 if short else 0


def measured(folder: Path) -> dict[str, tuple[float, float]]:
    """Percent of lines and of branches, by step."""
    data, report = folder / "coverage", folder / "coverage.json"
    coverage = [sys.executable, "-m", "coverage"]
    sources = ",".join(f"irdiff/{step}" for step in STEPS)
    tests = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/unit", "tests/golden"]
    subprocess.run(
        [*coverage, "run", "--branch", f"--source={sources}", f"--data-file={data}", *tests],
        cwd=ROOT,
        check=True,
    )
    subprocess.run([*coverage, "json", "-q", f"--data-file={data}", "-o", report], cwd=ROOT, check=True)
    files = json.loads(report.read_text())["files"]
    found = {}
    for step in STEPS:
        rows = [row["summary"] for name, row in files.items() if name.startswith(f"irdiff/{step}/")]
        lines, branches = (
            100 * sum(row[f"covered_{what}"] for row in rows) / sum(row[f"num_{of}"] for row in rows)
            for what, of in (("lines", "statements"), ("branches", "branches"))
        )
        found[step] = (lines, branches)
    return found


if __name__ == "__main__":
    sys.exit(main())
