"""Texts that differ in names only, found without numbering them: never more than the canonical form says."""

from __future__ import annotations

import re
from random import Random

import pytest

from irdiff.normalize import canonicalize, mlir
from irdiff.normalize.lexing import C_STRING, Strings
from irdiff.normalize.mlir_names import differ_in_names_only
from tests.mutation.artifacts import of_stage

_NAME = re.compile(r"[%^][\w.$-]+")
TEXT = """tt.func @f(%a: i32, %b: i32) {
%c = arith.subi %a, %b : i32
tt.print "%a" : %c
cf.br ^bb1(%c : i32)
^bb1(%d: i32):
tt.return
}"""


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("i32, %b", "i32, %x", False),
        ("%d", "%x", True),
        ("^bb1", "^next", True),
        ("%c", "%b", False),  # two become one
        ("subi %a, %b", "subi %b, %a", False),
        ("%d: i32", "%c: i32", False),  # one becomes two
        ("cf.br ^bb1", "cf.br ^bb2", False),
        ("^bb1", "%bb1", False),
        (" : i32\ntt", " : i64\ntt", False),
        ("tt.return", "\n\ntt.return", True),
        ("tt.return", "tt.return\ntt.return", False),
        ('"%a"', '"%x"', False),  # in a message
    ],
)
def test_names_only(old: str, new: str, same: bool) -> None:
    other = TEXT.replace(old, new)
    assert other != TEXT
    assert differ_in_names_only(TEXT, other) == same
    assert differ_in_names_only(other, TEXT) == same


@pytest.mark.parametrize("stage", ["ttir", "ttgir"])
def test_real_texts_renamed_at_random(stage: str) -> None:
    random = Random(5)
    for artifact in of_stage(stage, release="3.9.0"):
        text = mlir.strip(artifact.text)
        strings = Strings(text, C_STRING)
        names = sorted(set(_NAME.findall(strings.text)))
        numbers = random.sample(range(10**6), len(names))
        new = {name: f"{name[0]}n{number}" for name, number in zip(names, numbers, strict=True)}
        hidden = _NAME.sub(lambda match, new=new: new[match.group()], strings.text)
        renamed = strings.restore(hidden)
        assert differ_in_names_only(text, renamed)
        assert canonicalize(stage, text).lines == canonicalize(stage, renamed).lines
        places = list(_NAME.finditer(hidden))
        place = random.choice(places)
        others = [name for name in new.values() if name[0] == place.group()[0] and name != place.group()]
        if others:
            wrong = strings.restore(hidden[: place.start()] + random.choice(others) + hidden[place.end() :])
            assert not differ_in_names_only(text, wrong), artifact.name
