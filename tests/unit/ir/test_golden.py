"""Every rule: texts that must become equal, and nearest neighbours that must stay different.

A case is a folder `tests/golden/ir/IR/RULE` with `base.IR` and any number of `equal-WHY.IR` and
`differ-WHY.IR`. Adding one needs no Python. In `tests/golden/pairs` are texts that no compiler prints: nothing is taken
for the same of which that is not certain.
"""

from itertools import permutations
from operator import itemgetter
from pathlib import Path

import pytest

from irdiff.ir.lexing import AMDGCN, LLVM_IR, MLIR, PTX, Strings, UnclearError
from irdiff.ir.mlir import rules as mlir
from irdiff.texts import canonicalize, equivalent
from tests.unit.golden import golden

GOLDEN = Path(__file__).parents[2] / "golden" / "ir"
NEIGHBOURS = sorted(path for path in GOLDEN.glob("*/*/*") if not path.name.startswith("base."))
BASES = sorted(GOLDEN.glob("*/*/base.*"))


def _name(path):
    return str(path.relative_to(GOLDEN))


@pytest.mark.parametrize("path", NEIGHBOURS, ids=_name)
def test_neighbour(path):
    ir = path.suffix[1:]
    base, other = path.with_name(f"base.{ir}").read_text(), path.read_text()
    wanted = path.name.startswith("equal-")
    assert (canonicalize(ir, base).lines == canonicalize(ir, other).lines) == wanted
    assert equivalent(ir, base, other).equal == wanted
    assert equivalent(ir, other, base).equal == wanted


@pytest.mark.parametrize("path", BASES, ids=_name)
def test_each_rule_has_both_kinds_of_neighbour(path):
    names = {sibling.name.split("-")[0] for sibling in path.parent.iterdir() if sibling != path}
    assert names == {"equal", "differ"}


@pytest.mark.parametrize("path", [*BASES, *NEIGHBOURS], ids=_name)
def test_normalizing_twice_changes_nothing(path):
    ir, text = path.suffix[1:], path.read_text()
    canonical = canonicalize(ir, text)
    assert canonicalize(ir, canonical.text).lines == canonical.lines
    assert len(canonicalize(ir, text).numbers) == len(canonical.lines)


def pairs(name):
    return golden(f"pairs/{name}")["pair"]


@pytest.mark.parametrize("pair", pairs("unclear"), ids=itemgetter("why"))
def test_nothing_is_taken_for_the_same(pair):
    base, head = pair["base"], pair["head"]
    assert not equivalent(pair["ir"], base, head).equal
    assert canonicalize(pair["ir"], base).text == base
    assert canonicalize(pair["ir"], base).numbers == tuple(range(1, base.count("\n") + 2))


@pytest.mark.parametrize("block", [1, 60, mlir.BLOCK])
@pytest.mark.parametrize("pair", pairs("blocks"), ids=itemgetter("why"))
def test_the_answer_is_that_of_the_canonical_forms(pair, block, monkeypatch):
    ir, texts = pair["ir"], (pair["base"], pair["head"])
    whole = {text: canonicalize(ir, text) for text in texts}
    monkeypatch.setattr(mlir, "BLOCK", block)
    for one, other in permutations(texts):
        assert canonicalize(ir, one) == whole[one]
        found = equivalent(ir, one, other)
        assert found.equal == (whole[one].lines == whole[other].lines)
        assert not found.equal or found.header_equal == (whole[one].header == whole[other].header)


def test_comments_and_strings_in_one_pass():
    languages = {"ptx": PTX, "llir": LLVM_IR, "ttir": MLIR, "amdgcn": AMDGCN}
    for row in pairs("strings"):
        strings = Strings(languages[row["ir"]])
        assert strings.restore(strings.read(row["text"])) == row["read"], row


@pytest.mark.parametrize("text", ['"', '"a\\', "/*", "/*/", "a\fb"])
def test_what_does_not_end_is_unclear(text):
    with pytest.raises(UnclearError):
        Strings(PTX).read(text)
