"""`same-up-to-registers` of SASS: golden texts both ways, and real ones with their registers permuted.

A golden case is a folder `tests/golden/registers/sass/RULE` with `base.sass` and any number of
`same-WHY.sass` and `differ-WHY.sass`.
"""

import re
from pathlib import Path
from random import Random

import pytest

from irdiff.ir.sass.registers import same_up_to_registers
from irdiff.texts import canonicalize, equivalent
from tests.programs.mutation.artifacts import of_stage
from tests.unit.runs import told

GOLDEN = Path(__file__).parents[2] / "golden" / "registers" / "sass"
_REGISTER = re.compile(r"(?<![\w.$])R(\d+)(?![\w$])")
NEIGHBOURS = sorted(path for path in GOLDEN.glob("*/*") if path.name != "base.sass")


@pytest.mark.parametrize("path", NEIGHBOURS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_neighbour(path):
    base, other = path.with_name("base.sass").read_text(), path.read_text()
    wanted = path.name.startswith("same-")
    for texts in ((base, other), (other, base)):
        found = equivalent("sass", *texts)
        assert (found.equal or "same-up-to-registers" in told(found.findings)) == wanted
        assert found.equal == (canonicalize("sass", base).lines == canonicalize("sass", other).lines)


def test_each_rule_has_both_kinds_of_neighbour():
    for folder in GOLDEN.iterdir():
        assert {path.name.split("-")[0] for path in folder.glob("*-*")} == {"same", "differ"}


def _permuted(lines, random):
    """Blocks of eight of `R` and of `UR`, and single predicates, each go to another place of their file."""
    blocks = {file: random.sample(range(count), count) for file, count in (("R", 30), ("UR", 7))}
    predicates = {file: random.sample(range(7), 7) for file in ("P", "UP")}

    def move(match):
        file, number = match.group(1), int(match.group(2))
        if file in predicates:
            return f"{file}{predicates[file][number]}"
        return f"{file}{8 * blocks[file][number // 8] + number % 8}"

    return [re.sub(r"(?<![\w.$])(UR|UP|R|P)(\d+)(?![\w$])", move, line) for line in lines]


def test_real_texts():
    random = Random(4)
    accepted = refused = 0
    for artifact in of_stage("sass"):
        lines = list(canonicalize("sass", artifact.text).lines)
        assert same_up_to_registers(lines, lines)
        if re.search(r"GMMA|LDTM|STTM|USETMAXREG|\bPR\b|CALL|BPT|R2[4-9]\d", "\n".join(lines)):
            refused += not same_up_to_registers(lines, _permuted(lines, random))
            continue
        for _ in range(3):
            other = _permuted(lines, random)
            assert same_up_to_registers(lines, other), artifact.name
            wrong = random.choice([i for i, line in enumerate(other) if _REGISTER.search(line)])
            other[wrong] = _REGISTER.sub(lambda match: f"R{int(match.group(1)) ^ 1}", other[wrong], count=1)
            assert not same_up_to_registers(lines, other), (artifact.name, other[wrong])
            accepted += 1
    assert accepted >= 20
    assert refused >= 5
