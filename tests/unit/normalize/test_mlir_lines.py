"""MLIR compared line by line: each answer is that of the canonical forms, and real texts get one."""

from __future__ import annotations

import contextlib
import re
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irdiff.errors import NormalizeError
from irdiff.normalize import canonicalize
from irdiff.normalize.canonical import check_text
from irdiff.normalize.lexing import C_STRING, Strings
from irdiff.normalize.mlir_lines import compare
from tests.mutation.artifacts import of_stage
from tests.mutation.fuzz import mutate

TEXT = """#blocked = #ttg.blocked<{sizePerThread = [1], order = [0]}>
#slice = #ttg.slice<{dim = 0, parent = #blocked}>
#loc = loc("a.py":1:0)
module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @f(%a: i32 loc("a"(#loc)), %b: i32 loc("b"(#loc))) {
    %c = arith.subi %a, %b : i32 loc(#loc1)
    %d = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32, #slice> loc(#loc1)
    %e = tt.splat %c : i32 -> tensor<32xi32, #blocked>
    tt.print "%a" : %c loc(#loc2)
    cf.br ^bb1(%c : i32)
  ^bb1(%g: i32):
    %h = amdg.buffer_load %p[%e] : tensor<32xf16, #blocked>
    tt.call @g(%c) : (i32) -> () loc(#loc2)
    tt.return loc(#loc)
  } loc(#loc)
} loc(#loc)
#loc1 = loc("a.py":2:3)
#loc2 = loc(callsite(#loc1 at #loc))
"""

SAME = [
    ("%c", "%x"),
    ("^bb1", "^next"),
    ("loc(#loc1)", "loc(#loc2)"),
    ('"a.py"', '"b.py"'),
    ('loc("a"(#loc))', 'loc("a"(#loc1))'),
    (' loc("a"(#loc))', ""),
    (" : i32 loc(#loc1)", " : i32   loc(#loc1) // what"),
    ("end = 32 : i32, start = 0 : i32", "start = 0 : i32, end = 32 : i32"),
    ("#blocked", "#blocked7"),
    ("sizePerThread = [1], order = [0]", "order = [0], sizePerThread = [1]"),
    (" : tensor<32xf16, #blocked>", " : !tt.ptr<f16> -> tensor<32xf16, #blocked>"),
    ('"ttg.num-warps" = 4 : i32', '"ttg.num-warps" = 4 : i32, "ttng.two-ctas" = false'),
    ("@f", "@other"),
    ("    tt.return loc", "\n    tt.return loc"),
]
OTHER = [
    ('i32 loc("a"(#loc)), %b', 'i32 loc("a"(#loc)), %x'),
    ("%c = ", "%b = "),
    ("subi %a, %b", "subi %b, %a"),
    ("subi", "addi"),
    ("%g: i32", "%c: i32"),
    ("cf.br ^bb1", "cf.br ^bb2"),
    ("^bb1", "%bb1"),
    (" : i32 loc(#loc1)", " : i64 loc(#loc1)"),
    ('"%a"', '"%x"'),
    ("end = 32", "end = 64"),
    ("sizePerThread = [1]", "sizePerThread = [2]"),
    ("dim = 0", "dim = 1"),
    ("tensor<32xi32, #blocked>", "tensor<32xi32, #slice>"),
    (" : tensor<32xf16, #blocked>", " : !tt.ptr<bf16> -> tensor<32xf16, #blocked>"),
    ('"ttg.num-warps" = 4 : i32', '"ttg.num-warps" = 8 : i32'),
    ("@g", "@h"),
    ("    tt.return loc", "    tt.return\n    tt.return loc"),
    ("    tt.return loc(#loc)\n", ""),
    ("} loc(#loc)\n#loc1", "} loc(#loc)\n#blocked = #ttg.other\n#loc1"),
]


def agrees(base: str, head: str) -> bool | None:
    """The answer, after it was found to be that of the canonical forms; None where there is none."""
    found = compare(base, head)
    if found is not None:
        left, right = canonicalize("ttgir", base), canonicalize("ttgir", head)
        assert found.equal == (left.lines == right.lines), (base, head)
        assert not found.equal or found.header_equal == (left.header == right.header), (base, head)
    return None if found is None else found.equal


@pytest.mark.parametrize(("old", "new"), SAME)
def test_same(old: str, new: str) -> None:
    other = TEXT.replace(old, new)
    assert other != TEXT
    assert canonicalize("ttgir", TEXT).lines == canonicalize("ttgir", other).lines
    assert agrees(TEXT, other) is not False
    assert agrees(other, TEXT) is not False


@pytest.mark.parametrize(("old", "new"), OTHER)
def test_different(old: str, new: str) -> None:
    other = TEXT.replace(old, new, 1)
    assert other != TEXT
    assert canonicalize("ttgir", TEXT).lines != canonicalize("ttgir", other).lines
    assert agrees(TEXT, other) is not True
    assert agrees(other, TEXT) is not True


@pytest.mark.parametrize("number", [0, 1, 2, 3, 4, 7, 8, 9, 10, 11])
def test_usual_differences_are_judged(number: int) -> None:
    assert agrees(TEXT, TEXT.replace(*SAME[number])) is True


@pytest.mark.parametrize("number", [3, 7, 9, 10, 11, 12, 13])
def test_usual_changes_are_judged(number: int) -> None:
    assert agrees(TEXT, TEXT.replace(*OTHER[number], 1)) is False


_EDITS = st.lists(st.sampled_from(SAME + OTHER), max_size=4)
_WORDS = """%c %a ^bb1 #blocked #slice !x " // /* */ { } loc( ) alloc( @f @g __kernel__ $ - = , é : arith.addi
amdg.buffer_load !tt.ptr<f16> ttng.two-ctas module"""
_PIECES = st.sampled_from(
    [*_WORDS.split(), "\n", "\n#x = ", "\n} ", " ", "  ", " loc(#loc1)", "tt.func public @k(", " = ", " -> "]
)


@settings(max_examples=1500, deadline=None)
@given(_EDITS, _EDITS, st.lists(st.tuples(st.booleans(), st.integers(0, len(TEXT)), _PIECES), max_size=5))
def test_whatever_is_said_holds(
    ours: list[tuple[str, str]], theirs: list[tuple[str, str]], inserted: list[tuple[bool, int, str]]
) -> None:
    texts = [TEXT, TEXT]
    for side, edits in enumerate((ours, theirs)):
        for old, new in edits:
            texts[side] = texts[side].replace(old, new)
    for both, at, piece in inserted:
        for side in (0, 1) if both else (0,):
            texts[side] = texts[side][:at] + piece + texts[side][at:]
    with contextlib.suppress(NormalizeError):
        agrees(*texts)


@pytest.mark.parametrize("stage", ["ttir", "ttgir"])
def test_real_texts_of_two_releases(stage: str) -> None:
    """All are judged, but a few whose names are not renamed one-to-one."""
    heads = {(a.kernel, a.target): a.text for a in of_stage(stage, release="3.9.0")}
    pairs = [
        (a.text, heads[a.kernel, a.target])
        for a in of_stage(stage, release="3.8.0")
        if (a.kernel, a.target) in heads
    ]
    answers = [agrees(*pair) for pair in pairs]
    assert answers.count(None) < len(answers) / 10


@pytest.mark.parametrize("stage", ["ttir", "ttgir"])
def test_real_texts_renamed_at_random(stage: str) -> None:
    random = Random(5)
    for artifact in of_stage(stage, release="3.9.0"):
        strings = Strings(artifact.text, C_STRING)
        names = sorted(set(re.findall(r"[%^][\w.$-]+", strings.text)))
        numbers = random.sample(range(10**6), len(names))
        new = {name: f"{name[0]}n{number}" for name, number in zip(names, numbers, strict=True)}
        hidden = re.sub(r"[%^][\w.$-]+", lambda match, new=new: new[match.group()], strings.text)
        assert agrees(artifact.text, strings.restore(hidden)) is True, artifact.name
        place = random.choice(list(re.finditer(r"[%^][\w.$-]+", hidden)))
        other = random.choice(list(new.values()))
        assert (
            agrees(artifact.text, strings.restore(hidden[: place.start()] + other + hidden[place.end() :]))
            is not True
            or other == place.group()
        )


@pytest.mark.parametrize("stage", ["ttir", "ttgir", "glir"])
def test_mutated_texts(stage: str) -> None:
    random = Random(7)
    for artifact in of_stage(stage)[::2]:
        text = mutate(artifact.text, random)
        with contextlib.suppress(NormalizeError):
            check_text(stage, text)
            agrees(artifact.text, text)
            agrees(text, mutate(text, random))
