"""What comparing two real releases gave, by stage, and changed cases drawn at random, each in a sentence.

python -m tests.programs.real_pairs RUN [--explain 10 --seed 1]

RUN is a run folder. Each sentence says only what can be read off the run: the pass where it was found, the
lines of the canonical edit in the first changed stage, and what the machine code says. Nothing is compiled.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path
from random import Random

from irdiff import config, normalize
from irdiff.cli import diff_command
from irdiff.config import Config
from irdiff.diffs import stage_diff
from irdiff.diffs.renumbering import Kind
from irdiff.errors import IrdiffError
from irdiff.findings import FindingKind
from irdiff.model import Case, Run, StageStatus, Verdict
from irdiff.report import wording
from irdiff.report.rank import moved_facts
from irdiff.run import run_folder
from irdiff.stages import in_stage_order

_SHOWN = 90
"""Characters of a line of the edit; its first words tell what was done."""


def table(run: Run) -> list[str]:
    """Stage × status, over the cases that were compared in code; and the verdicts."""
    compared = [case for case in run.cases if case.stages]
    counts: dict[str, Counter[StageStatus]] = {}
    for case in compared:
        for stage, status in case.stages.items():
            counts.setdefault(stage, Counter())[status] += 1
    verdicts = ", ".join(f"{count} {name.value}" for name, count in run.summary.verdicts.items() if count)
    found = Counter(finding.kind for case in run.cases for finding in case.findings)
    return [
        f"{wording.side(run.base)} -> {wording.side(run.head)}: {len(run.cases)} cases: {verdicts}",
        f"{'stage':8}" + "".join(f"{status.value:>12}" for status in StageStatus) + f"{'all':>8}",
        *(
            f"{stage:8}" + "".join(f"{row[status]:12}" for status in StageStatus) + f"{row.total():8}"
            for stage, row in in_stage_order(counts)
        ),
        "findings: " + ", ".join(f"{count} {name}" for name, count in found.most_common()),
    ]


def sentence(run: Run, folder: Path, case: Case, settings: Config) -> str:
    """Why the change is real, as far as the run knows."""
    origin = case.origin
    assert origin is not None
    where = f"in {origin.stage}" + (f", pass {origin.pass_name}" if origin.pass_name else "")
    return (
        f"{case.id}: first changed {where}: {_edit(folder, case)}; {_machine_code(folder, case, settings)}."
    )


def _edit(folder: Path, case: Case) -> str:
    assert case.origin is not None
    stage = case.origin.stage
    if stage in ("launch", "sass"):
        differing = [finding for finding in case.findings if finding.kind is FindingKind.LAUNCH_DIFFERS]
        return str(differing[0]) if differing else "the text above it is the same"
    diff = stage_diff.read(folder, case, stage)
    if isinstance(diff, str):
        return diff
    lines: dict[Kind, list[str]] = {Kind.REMOVED: [], Kind.ADDED: []}
    for index, row in enumerate(diff.rows):
        if row.kind in lines:
            lines[row.kind].append(diff.line(index).text)
    first = [f"`{mark.value}{found[0][:_SHOWN]}`" for mark, found in lines.items() if found]
    counts = f"{len(lines[Kind.REMOVED])} lines removed, {len(lines[Kind.ADDED])} added"
    return counts + (f", first {' and '.join(first)}" if first else "")


def _machine_code(folder: Path, case: Case, settings: Config) -> str:
    said = [wording.finding(row) for row in case.findings if row.kind is not FindingKind.LEXICAL_LLIR]
    if case.artifacts.base.get("cubin") and case.artifacts.head.get("cubin"):
        try:
            texts = diff_command.disassembled(folder, case, settings)
            found = normalize.equivalent("sass", texts.base, texts.head)
            said += ["the bytes of the code differ, its disassembly does not"] * found.equal
            said += [f"SASS: {wording.finding(row)}" for row in found.findings]
        except IrdiffError as error:
            said.append(f"not disassembled ({error.what})")
    moved = [
        f"{name} {before} -> {after}"
        for name, (before, after) in moved_facts(case.facts.base, case.facts.head).items()
    ]
    shown = [*said, *moved[:3]]
    return "; ".join(shown) if shown else "the bytes of the code differ, no counted fact moved"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.programs.real_pairs")
    parser.add_argument("run", type=Path)
    parser.add_argument("--explain", type=int, default=0, metavar="N")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    run = run_folder.load(arguments.run)
    print("\n".join(table(run)))
    changed = [case for case in run.cases if case.verdict is Verdict.CHANGED and case.origin]
    chosen = Random(arguments.seed).sample(changed, min(arguments.explain, len(changed)))
    if chosen:
        print(f"\n{len(chosen)} of {len(changed)} changed cases, drawn with seed {arguments.seed}:")
    settings = config.load()
    for case in chosen:
        print("- " + sentence(run, arguments.run, case, settings))


if __name__ == "__main__":
    main()
