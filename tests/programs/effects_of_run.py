"""What is claimed of each changed case of a run folder: `python -m tests.programs.effects_of_run RUN [--bits same]`.

A line a case: its id, whether both sides compute the same bits, the class, and the gravest sentence, with the witness of
a hazard. The last lines count the classes by target, as recorded and as now, and the CPU time beside that of compiling.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from pathlib import Path

from irdiff.backends.binary_operations import BinaryOperations
from irdiff.effects import cases
from irdiff.model import Verdict
from irdiff.run import run_folder
from irdiff.texts import canonicalize


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--bits", choices=("same", "may differ", "unknown"))
    parser.add_argument("--package", default="", help="the folder of a `triton` that has nvdisasm")
    asked = parser.parse_args()

    def lines(stage: str, digest: str) -> tuple[str, ...]:
        content = run_folder.artifact(asked.run, digest)
        assert content is not None
        return canonicalize(stage, content.decode()).lines

    def content(digest: str) -> bytes:
        found = run_folder.artifact(asked.run, digest)
        assert found is not None
        return found

    machine_code = BinaryOperations(content, [asked.package] if asked.package else [])
    run = run_folder.load(asked.run)
    counts: Counter[tuple[str, str]] = Counter()
    severities: Counter[str] = Counter()
    compiled_s, started_s = 0.0, time.process_time()
    for case in run.cases:
        if case.verdict is not Verdict.CHANGED:
            continue
        effects = cases.of_case(case, lines, machine_code)
        kind, bits = (effects.kind, effects.bits) if effects else ("no text", "unknown")
        counts[case.target, kind] += 1
        counts[case.target, f"bits {bits}"] += 1
        severities[case.summary.severity if case.summary else ""] += 1
        compiled_s += sum(sum(side.values()) for side in case.compile_s)
        if asked.bits in (None, bits):
            print(
                f"{case.id}  bits {bits}  {kind}  {effects.said[0] if effects and effects.said else ''}",
                flush=True,
            )
            for hazard in effects.hazards if effects else ():
                print(f"    {hazard.what} {hazard.detail}")
                for name, witness in (("base", hazard.witness.base), ("head", hazard.witness.head)):
                    print(
                        "".join(f"        {name} {line.number}: {line.text[:150]}\n" for line in witness),
                        end="",
                    )
    for (target, name), count in sorted(counts.items()):
        print(f"{count:5}  {target}  {name}")
    print("recorded severities:", dict(severities))
    print(
        f"{time.process_time() - started_s:.1f} s of CPU to read and compare; {compiled_s:.0f} s to compile both sides"
    )


if __name__ == "__main__":
    main()
