"""Pairs of `tests/golden/pairs` that no compiler prints: nothing is taken for the same of which that is not certain."""

import tomllib
from itertools import permutations
from operator import itemgetter
from pathlib import Path

import pytest

from irdiff.normalize import canonicalize, equivalent, mlir
from irdiff.normalize.lexing import AMDGCN, LLVM_IR, MLIR, PTX, Strings, UnclearError


def pairs(name):
    file = Path(__file__).parents[2] / "golden" / "pairs" / f"{name}.toml"
    return tomllib.loads(file.read_text())["pair"]


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
