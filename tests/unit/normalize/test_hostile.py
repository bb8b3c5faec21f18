"""Hostile input gives an error or a result, within a bound: never a crash, a hang or a wrong `equal`."""

import contextlib
import time
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irdiff.binaries import machine_code
from irdiff.errors import NormalizeError
from irdiff.normalize import canonicalize, equivalent, instruction_facts, llvm_reader
from tests.programs.mutation.artifacts import of_stage

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


@pytest.mark.slow
@pytest.mark.parametrize("shape", _SHAPES)
@pytest.mark.parametrize("stage", STAGES)
def test_bounded(stage, shape):
    start = time.process_time()
    with contextlib.suppress(NormalizeError):
        canonicalize(stage, _PREFIX[stage] + _SHAPES[shape])
    with contextlib.suppress(NormalizeError):
        equivalent(stage, _PREFIX[stage] + _SHAPES[shape], _PREFIX[stage] + _SHAPES[shape] + "\n")
    assert time.process_time() - start < BOUND_S


def _repeated(line):
    return lambda count: "".join(line.replace("#N", str(number)) for number in range(count))


_COUNT = 1500
_GROWING = {
    "metadata in metadata": ("llir", lambda n: f"!a = !{{!0}}\n!0 = {'!{' * n}{'}' * n}\n"),
    "chain of metadata": ("llir", lambda n: "!a = !{!0}\n" + _repeated("!#N = !{!1#N, !#N}\n")(n)),
    "wide metadata": ("llir", lambda n: "!a = !{!0}\n!0 = !{" + _repeated("!1#N, ")(n) + "!1}\n"),
    "conventions": ("llir", lambda n: "define " + "ptx_kernel " * n + "\n"),
    "internal functions": ("llir", _repeated("define internal void @a__#N() {\n  ret void\n}\n")),
    "private variables": ("llir", _repeated("@a#N = private constant i32 #N\n")),
    "uses of a long group": ("llir", lambda n: f'attributes #0 = {{ {"a=b " * n}}}\n' + "call void @f() #0\n" * n),
    "types like numbers": ("llir", _repeated("%v#N = type {}\n")),
    "one set of registers": ("ptx", lambda n: "{" + ".reg .b32 %r<1>;\n" * n + "}"),
    "sets of registers": ("ptx", lambda n: "{" + "".join(f".reg .b32 %{_word(k)}<1>;\n" for k in range(n)) + "}"),
    "braces of functions": ("ptx", lambda n: "{}" * n),
    "functions of PTX": ("ptx", _repeated(".func a__#N() { call a__#N; }\n")),
    "debug sections of PTX": ("ptx", lambda n: ".section .debug_x {\n.b8 1\n" * n),
    "opcode of colons": ("ptx", lambda n: "\n a" + ":" * n + "\n"),
    "functions of AMDGCN": ("amdgcn", _repeated(".type a__#N,@function\n.set .La__#N.num_vgpr, 3\na__#N:\n")),
    "settings": ("amdgcn", lambda n: ".set " + "a." * n + ", 1\n"),
    "unloaded sections": ("amdgcn", lambda n: "\t.section .debug_x\n.La:\n" * n),
    "metadata of AMDGCN": ("amdgcn", lambda n: "\t.section .debug_x\n" + "\t.amdgpu_metadata\n" * n),
    "branches": ("amdgcn", lambda n: _BRANCHES + _repeated(".LBB0_#N:\n v_mov_b32 v1, v1\n s_cbranch_scc1 .LBB0_#N\n")(n)),
    "regions that use": ("ttir", lambda n: _repeated("scf.if %c {\nop %u#N\n")(n) + "}\n" * n),
    "regions that define": ("ttir", lambda n: _repeated("scf.if %c {\n%u#N = op %w\n")(n) + "}\n" * n),
    "uses of a long alias": ("ttir", lambda n: f"#a = dense<{'1' * n}>\n" + "op #a\n" * n),
    "aliases of a long alias": ("ttir", lambda n: f"#a = dense<{'1' * n}>\n" + _repeated("#b#N = x<#a>\n")(n)),
    "private functions": ("ttir", _repeated("tt.func private @a__#N() {\ntt.call @a__#N()\n}\n")),
    "fixed registers": ("sass", lambda n: "        /*0000*/                   HGMMA R1, PR, R1 ;\n" * n),
}  # fmt: skip
_BRANCHES = ".amdhsa_kernel f\n.type f,@function\nf:\n"


def _word(number):
    return "".join(chr(ord("a") + int(digit)) for digit in str(number))


def _spent_s(stage, text):
    other = text.replace("v1, v1", "v2, v2").replace("R1", "R9")
    start = time.process_time()
    for action in (canonicalize, instruction_facts):
        with contextlib.suppress(NormalizeError):
            action(stage, text)
    for head in (f"{text}x\n", other):
        with contextlib.suppress(NormalizeError):
            equivalent(stage, text, head)
    return time.process_time() - start


@pytest.mark.slow
@pytest.mark.parametrize("shape", _GROWING)
def test_the_work_grows_as_the_text_does(shape):
    """Four times the text, at most ten times the work, where squares would be sixteen: the least of some tries."""
    stage, make = _GROWING[shape]
    small, large = (_PREFIX[stage] + make(count) for count in (_COUNT, 4 * _COUNT))
    for tries in (1, 3, 9):
        spent = [min(_spent_s(stage, text) for _ in range(tries)) for text in (small, large)]
        if spent[1] < 10 * spent[0] * len(large) / len(small) / 4:
            return
    pytest.fail(f"{spent[0]:.3f} s for {len(small)} characters, {spent[1]:.3f} s for {len(large)}")


def test_words_of_assembly_do_not_multiply_the_work_of_reading():
    spent = []
    for count in (20_000, 80_000):
        start = time.process_time()
        assert llvm_reader.reprint("call void " + "asm " * count).text is None
        spent.append(time.process_time() - start)
    assert spent[1] < 10 * spent[0]


@pytest.mark.parametrize("stage", STAGES)
def test_200_mb_are_refused_at_once(stage):
    text = "add.s32 %r1, %r2, %r3;\n" * 9_000_000
    start = time.process_time()
    with pytest.raises(NormalizeError, match="larger"):
        canonicalize(stage, text)
    with pytest.raises(NormalizeError, match="larger"):
        equivalent(stage, text, text)
    assert time.process_time() - start < BOUND_S


@pytest.mark.parametrize("stage", STAGES)
def test_binary_is_refused(stage):
    binary = Random(1).randbytes(20_000)
    for text in (binary.decode("latin-1"), binary.decode("utf-8", "replace"), "module {\n}\0", "\ue000"):
        with pytest.raises(NormalizeError):
            canonicalize(stage, text)


@pytest.mark.parametrize("stage", STAGES[:-1])
def test_unrecognized_texts_never_compare_equal(stage):
    sign = ";" if stage in ("llir", "amdgcn") else "//"
    with pytest.raises(NormalizeError):
        equivalent(stage, f"{sign} one\n", f"{sign} two\n")


@pytest.mark.slow
@pytest.mark.parametrize("stage", STAGES[:-1])
def test_truncated_texts(stage):
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


@pytest.mark.slow
@given(stage=st.sampled_from(STAGES), text=st.text(max_size=400))
@settings(max_examples=300, deadline=None)
def test_any_text_gives_a_result_or_an_error(stage, text):
    try:
        canonical = canonicalize(stage, text)
    except NormalizeError:
        return
    assert "\n" not in "".join(canonical.lines)


@given(stage=st.sampled_from(["cubin", "hsaco"]), content=st.binary(max_size=600))
@settings(max_examples=200, deadline=None)
def test_any_binary_gives_a_result_or_an_error(stage, content):
    whole = of_stage(stage)[0].content
    for binary in (content, whole[: len(content)] + content + whole[2 * len(content) :]):
        with contextlib.suppress(NormalizeError):
            machine_code(stage, binary)
