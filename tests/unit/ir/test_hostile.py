"""Hostile input gives an error or a result, within a bound: never a crash, a hang or a wrong `equal`."""

import contextlib
import functools
import time
from operator import itemgetter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irdiff.backends.machine_code import machine_code
from irdiff.errors import NormalizeError
from irdiff.ir.canonical import MAX_TEXT_BYTES
from irdiff.ir.llir import llvm_reader
from irdiff.texts import canonicalize, equivalent, instruction_facts
from tests.programs.mutation.artifacts import of_stage
from tests.unit.golden import golden

STAGES = ("ttir", "ttgir", "llir", "ptx", "amdgcn", "sass", "unknownir")
BOUND_S = 10.0
"""On a slow shared machine; the texts here take well under a second each on a quiet one."""

GOLDEN = golden("hostile")
_PREFIX = GOLDEN["prefix"]


def made(parts, count=0):
    return "".join(part if isinstance(part, str) else repeated(part, count) for part in parts)


def repeated(part, count):
    once, times = made(part[:-1], count), count if part[-1] == "n" else part[-1]
    if not {"#N", "#M", "#W"} & {*(once[at : at + 2] for at in range(len(once)))}:
        return once * times
    letters = str.maketrans("0123456789", "abcdefghij")
    numbers = ({"#N": str(n), "#M": str(n + 1), "#W": str(n).translate(letters)} for n in range(times))
    return "".join(functools.reduce(lambda text, row: text.replace(*row), of.items(), once) for of in numbers)


@pytest.mark.slow
@pytest.mark.parametrize("shape", GOLDEN["bounded"])
@pytest.mark.parametrize("stage", STAGES)
def test_bounded(stage, shape):
    text = _PREFIX[stage] + made(GOLDEN["bounded"][shape])
    start = time.process_time()
    with contextlib.suppress(NormalizeError):
        canonicalize(stage, text)
    with contextlib.suppress(NormalizeError):
        equivalent(stage, text, text + "\n")
    assert time.process_time() - start < BOUND_S


_COUNT = 1500


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
@pytest.mark.parametrize("row", GOLDEN["growing"], ids=itemgetter("name"))
def test_the_work_grows_as_the_text_does(row):
    """Four times the text, at most ten times the work, where squares would be sixteen: the least of some tries."""
    stage = row["ir"]
    small, large = (_PREFIX[stage] + made(row["parts"], count) for count in (_COUNT, 4 * _COUNT))
    for tries in (1, 3, 9):
        spent = [min(_spent_s(stage, text) for _ in range(tries)) for text in (small, large)]
        if spent[1] < 10 * spent[0] * len(large) / len(small) / 4:
            return
    pytest.fail(f"{spent[0]:.3f} s for {len(small)} characters, {spent[1]:.3f} s for {len(large)}")


def test_words_of_assembly_do_not_multiply_the_work_of_reading():
    """A fifth of a second; its square would take longer than a test may."""
    assert llvm_reader.reprint("call void " + "asm " * 800_000).text is None


@pytest.mark.parametrize("stage", STAGES)
def test_more_than_64_mib_are_refused(stage):
    text = " " * (MAX_TEXT_BYTES + 1)
    with pytest.raises(NormalizeError, match="larger"):
        canonicalize(stage, text)
    with pytest.raises(NormalizeError, match="larger"):
        equivalent(stage, text, text)


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
@settings(max_examples=300)
def test_any_text_gives_a_result_or_an_error(stage, text):
    try:
        canonical = canonicalize(stage, text)
    except NormalizeError:
        return
    assert "\n" not in "".join(canonical.lines)


@given(stage=st.sampled_from(["cubin", "hsaco"]), content=st.binary(max_size=600))
@settings(max_examples=200)
def test_any_binary_gives_a_result_or_an_error(stage, content):
    whole = of_stage(stage)[0].content
    for binary in (content, whole[: len(content)] + content + whole[2 * len(content) :]):
        with contextlib.suppress(NormalizeError):
            machine_code(stage, binary)
