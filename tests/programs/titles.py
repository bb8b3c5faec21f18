"""The titles of all groups of a comparison, as data that a test holds: `python -m tests.programs.titles RUN NAME`.

Writes `tests/data/titles/NAME.txt`, a line for each group in the order of the run, to be read and judged by a
person, and `NAME.json.zst`, what the titles are made from: the causes and the figures of each case.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import zstandard

from irdiff.group import titles
from irdiff.model import Case, Cause, CauseKind, ChangeGroup, Run, Sides, Verdict
from irdiff.run import run_folder
from tests.unit import runs

DATA = Path(__file__).parents[1] / "data" / "titles"


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """A group as it was recorded."""

    severity: str
    origin: str
    members: tuple[tuple[Case, tuple[Cause, ...]], ...]

    @property
    def line(self) -> str:
        count = len(self.members)
        return f"{count:3}  {self.severity:24}  {self.origin:48}  {titles.of_group(self.members)}".rstrip()


def rows(run: Run) -> Iterator[dict[str, Any]]:
    cases = {case.id: case for case in run.cases}
    for group in run.groups:
        yield {
            "severity": group.severity,
            "origin": _origin(group),
            "members": [_member(cases[name]) for name in group.members],
        }


def _origin(group: ChangeGroup) -> str:
    return f"{group.origin_stage}: {group.pass_name}" if group.pass_name else group.origin_stage


def _member(case: Case) -> dict[str, Any]:
    base, head = case.facts
    assert case.summary is not None
    return {
        "id": case.id,
        "verdict": case.verdict,
        "base": dict(base),
        "head": {name: value for name, value in head.items() if base.get(name) != value},
        "gone": sorted(base.keys() - head.keys()),
        "causes": [asdict(cause) for cause in case.summary.causes],
    }


def read(name: str) -> list[Recorded]:
    content = zstandard.ZstdDecompressor().decompress((DATA / f"{name}.json.zst").read_bytes())
    return [
        Recorded(
            severity=row["severity"],
            origin=row["origin"],
            members=tuple(map(_recorded_member, row["members"])),
        )
        for row in json.loads(content)
    ]


def _recorded_member(row: dict[str, Any]) -> tuple[Case, tuple[Cause, ...]]:
    base = row["base"]
    head = {name: value for name, value in {**base, **row["head"]}.items() if name not in row["gone"]}
    case = runs.case(row["id"], Verdict(row["verdict"]), facts=Sides(base=base, head=head))
    return case, tuple(Cause(**{**cause, "kind": CauseKind(cause["kind"])}) for cause in row["causes"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("name")
    options = parser.parse_args()
    DATA.mkdir(parents=True, exist_ok=True)
    content = json.dumps(list(rows(run_folder.load(options.run))), sort_keys=True).encode()
    (DATA / f"{options.name}.json.zst").write_bytes(zstandard.ZstdCompressor(level=19).compress(content))
    lines = [recorded.line for recorded in read(options.name)]
    (DATA / f"{options.name}.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
