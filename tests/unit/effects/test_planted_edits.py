"""Edits that break kernels, planted in real texts: none is code motion, each is named by its class and a sentence."""

import re
from collections import Counter
from operator import itemgetter

import pytest

from irdiff import effects
from irdiff.model import Bits
from tests.programs.effect_rewrites import texts
from tests.unit.golden import golden

PLANTED = golden("planted-edits")["edit"]


@pytest.mark.parametrize("row", PLANTED, ids=itemgetter("why"))
def test_an_edit_is_named(row):
    stage, kernel, target = row["artifact"].split()
    base = "\n".join(dict(texts(stage))[f"3.9.0/{kernel}/{target}/{stage}"])
    head, made = re.subn(row["pattern"], row["replacement"], base, count=row["count"], flags=re.M)
    assert made == row["count"] or not row["count"]
    assert head != base
    found = effects.compare(stage, base.split("\n"), head.split("\n"))
    _, words, times = found.said[0]
    assert (found.kind, f"{words} ({times}×)" if times > 1 else words) == (row["kind"], row["said"])
    assert found.bits is not Bits.SAME


def test_there_are_ten_of_each_kind_at_three_stages_in_five_kernels():
    kinds = Counter(row["kind"] for row in PLANTED)
    assert min(kinds["memory"], kinds["synchronization"], kinds["floating point"]) >= 10
    stages, kernels, _ = zip(*(row["artifact"].split() for row in PLANTED), strict=True)
    assert set(stages) == {"ptx", "llir", "amdgcn"} and len(set(kernels)) >= 5
