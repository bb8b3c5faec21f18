"""Hostile input gives an error or a result, within a bound: never a crash, a hang or a wrong `equal`."""

from __future__ import annotations

import contextlib
import time
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irdiff.errors import NormalizeError
from irdiff.normalize import canonicalize, equivalent, machine_code
from tests.mutation.artifacts import of_stage

STAGES = ("ttir", "ttgir", "llir", "ptx", "amdgcn", "sass", "unknownir")
BOUND_S = 10.0
"""On a slow shared machine; the texts here take well under a second each on a quiet one."""

_PREFIX = {
    "ttir": "module {\n",
    "ttgir": "module {\n",
    "llir": "define void @f() {\n",
    "ptx": ".version 8.0\n",
    "amdgcn": "\ts_endpgm\n",
    "sass": "        /*0000*/                   EXIT ;\n",
    "unknownir": "",
}
_LENGTH = 300_000
_SHAPES = {
    "braces": "{" * _LENGTH,
    "closing braces": "}\n" * _LENGTH,
    "brackets": "([{<" * _LENGTH,
    "quotes": '"' * (_LENGTH | 1),
    "escapes": '"' + "\\" * _LENGTH,
    "strings": '"a" ' * _LENGTH,
    "blanks": " " * _LENGTH + "x",
    "lines of blanks": (" " * 1000 + "\n") * 300,
    "block comments": "/*" * _LENGTH,
    "closed block comments": "/**/" * _LENGTH,
    "locations": "loc(" * _LENGTH,
    "locations in locations": "x loc(" + "(" * _LENGTH,
    "names": "%a" * _LENGTH,
    "defined names": "".join(f"%{n} = x %{n}\n" for n in range(_LENGTH // 10)),
    "debug sections": "\t.section\t.debug_x {\n" * (_LENGTH // 20),
    "metadata": "".join(f"!{n} = !{{!{n + 1}, !{n + 1}}}\n" for n in range(_LENGTH // 20)) + "!a = !{!0}\n",
    "attributes": "attributes #0 = { " + "a(" * _LENGTH,
    "aliases": "".join(f"#a{n} = #a{n + 1} #a{n + 1}\n" for n in range(200)) + "x #a0\n",
    "self alias": "#a = #a\n%0 = x #a\n",
    "numbers": "1" * _LENGTH,
    "float": "fadd float 0x" + "1" * _LENGTH,
    "exponents": "fadd float 1.0e+" + "1" * _LENGTH,
    "dictionaries": "{a = {b = {c = " * (_LENGTH // 10) + "}" * _LENGTH,
    "flat dictionary": "{" + "a = 1, " * (_LENGTH // 10) + "b = 2}",
    "labels": "".join(f"$L{n}:\n.LBB0_{n}:\n" for n in range(_LENGTH // 20)),
    "underscores": "\n" + "s_" * _LENGTH,
    "underscored lines": ("\n" + "s_mov_b32 s0, s1 " * 1000) * 20 + "\ns" + "_s" * _LENGTH,
    "regions": "scf.if %c {\n" * (_LENGTH // 10),
}


@pytest.mark.parametrize("shape", _SHAPES)
@pytest.mark.parametrize("stage", STAGES)
def test_bounded(stage: str, shape: str) -> None:
    start = time.process_time()
    with contextlib.suppress(NormalizeError):
        canonicalize(stage, _PREFIX[stage] + _SHAPES[shape])
    with contextlib.suppress(NormalizeError):
        equivalent(stage, _PREFIX[stage] + _SHAPES[shape], _PREFIX[stage] + _SHAPES[shape] + "\n")
    assert time.process_time() - start < BOUND_S


@pytest.mark.parametrize("stage", STAGES)
def test_200_mb_are_refused_at_once(stage: str) -> None:
    text = "add.s32 %r1, %r2, %r3;\n" * 9_000_000
    start = time.process_time()
    with pytest.raises(NormalizeError, match="larger"):
        canonicalize(stage, text)
    with pytest.raises(NormalizeError, match="larger"):
        equivalent(stage, text, text)
    assert time.process_time() - start < BOUND_S


@pytest.mark.parametrize("stage", STAGES)
def test_binary_is_refused(stage: str) -> None:
    binary = Random(1).randbytes(20_000)
    for text in (binary.decode("latin-1"), binary.decode("utf-8", "replace"), "module {\n}\0", "\ue000"):
        with pytest.raises(NormalizeError):
            canonicalize(stage, text)


@pytest.mark.parametrize("stage", STAGES[:-1])
def test_unrecognized_texts_never_compare_equal(stage: str) -> None:
    sign = ";" if stage in ("llir", "amdgcn") else "//"
    with pytest.raises(NormalizeError):
        equivalent(stage, f"{sign} one\n", f"{sign} two\n")


@pytest.mark.parametrize("stage", STAGES[:-1])
def test_truncated_texts(stage: str) -> None:
    for artifact in of_stage(stage, release="3.9.0")[::7]:
        text = artifact.text
        for cut in Random(2).sample(range(len(text)), 12):
            try:
                comparison = equivalent(stage, text, text[:cut])
            except NormalizeError:
                continue
            assert comparison.equal == (
                canonicalize(stage, text).lines == canonicalize(stage, text[:cut]).lines
            )


def test_a_broken_location_is_no_operation() -> None:
    """The quick comparison by operations must not see more than the full form keeps."""
    text = '#loc5 = loc("a.py":1:2)\nmodule {\ntt.return\n}\n'
    broken = text.replace('loc("', "lo")
    assert canonicalize("ttir", text).lines == canonicalize("ttir", broken).lines
    assert equivalent("ttir", text, broken).equal


@given(stage=st.sampled_from(STAGES), text=st.text(max_size=400))
@settings(max_examples=300, deadline=None)
def test_any_text_gives_a_result_or_an_error(stage: str, text: str) -> None:
    try:
        canonical = canonicalize(stage, text)
    except NormalizeError:
        return
    assert "\n" not in "".join(canonical.lines)


@given(stage=st.sampled_from(["cubin", "hsaco"]), content=st.binary(max_size=600))
@settings(max_examples=200, deadline=None)
def test_any_binary_gives_a_result_or_an_error(stage: str, content: bytes) -> None:
    whole = of_stage(stage)[0].content
    for binary in (content, whole[: len(content)] + content + whole[2 * len(content) :]):
        with contextlib.suppress(NormalizeError):
            machine_code(stage, binary)
