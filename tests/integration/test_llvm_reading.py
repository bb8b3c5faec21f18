"""LLVM IR read by a child process: what it adds, and that its death costs one answer."""

import sys
from contextlib import closing

import pytest

from irdiff.ir.llir.llvm_process import MAX_DEATHS, MAX_LENGTH, LlvmReader
from irdiff.texts import equivalent
from tests.programs.mutation.artifacts import of_stage
from tests.texts import text_of
from tests.unit.runs import told

_OLD = text_of("llvm_reading/old.ll")
"""The one-argument form, which LLVM upgrades since 3.1."""
_NEW = _OLD.replace("ctlz.i32(i32 %x)", "ctlz.i32(i32 %x, i1 false)").replace("(i32)", "(i32, i1)")

_SERVES = text_of("llvm_reading/serves.py")


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    with closing(LlvmReader(tmp_path_factory.mktemp("reader") / "log")) as made:
        yield made


def test_an_old_spelling_and_a_new_one_of_the_same_are_equivalent(reader):
    assert not equivalent("llir", _OLD, _NEW).equal
    found = equivalent("llir", _OLD, _NEW, reprint=reader.reprint)
    assert found.equal
    assert told(found.findings) == ("equal-as-llvm-prints",)


def test_what_llvm_cannot_read_is_compared_lexically_and_says_so(reader):
    broken = _OLD.replace("ret i32 %y", "ret i32 %missing")
    for base, head in ((_OLD, broken), (broken, _OLD)):
        found = equivalent("llir", base, head, reprint=reader.reprint)
        assert not found.equal
        assert "lexical-llir:unreadable" in told(found.findings)


def test_equal_texts_and_other_irs_are_not_read(tmp_path):
    with closing(LlvmReader(tmp_path / "log", command=("/nonexistent",))) as none:
        text = of_stage("llir")[0].text
        assert equivalent("llir", text, text + "; a comment\n", reprint=none.reprint).findings == ()
        ptx = (".version 8\nret;\n", ".version 8\nexit;\n")
        assert not equivalent("ptx", *ptx, reprint=none.reprint).findings
        assert not none._deaths  # nobody has asked


def test_long_and_hostile_texts_end(reader):
    assert reader.reprint(_OLD + ";" * MAX_LENGTH).why_not == "too-long"
    assert reader.reprint('@"\udc80" = global i32 1').why_not == "unreadable"
    nested = _OLD + "@a = global " + "[1 x " * 50_000
    for text in ("define" * 100_000, "{" * 1_000_000, nested, _OLD * 50, ""):
        printed = reader.reprint(text)
        assert printed.text is not None or printed.why_not in ("unreadable", "died", "timeout")
    assert reader.reprint(_OLD).text


def _fake(tmp_path, **options):
    return LlvmReader(tmp_path / "log", command=(sys.executable, "-c", _SERVES), **options)


def test_a_death_costs_one_answer(tmp_path):
    with closing(_fake(tmp_path, timeout_s=5.0)) as fake:
        assert fake.reprint("hang").why_not == "timeout"
    with closing(_fake(tmp_path, timeout_s=600.0)) as fake:
        assert fake.reprint("one").text == "ONE"
        for text in ("abort", "lie", "endless"):
            assert fake.reprint(text).why_not == "died"
        assert fake.reprint("two").text == "TWO"
        found = equivalent("llir", _OLD, _NEW, reprint=lambda _: fake.reprint("abort"))
        assert "lexical-llir:died" in told(found.findings)
    assert fake.reprint("one").why_not == "unavailable", "after closing nothing is read"


@pytest.mark.parametrize("command", [("/nonexistent",), (sys.executable, "-c", "pass")])
def test_where_there_is_no_reader_texts_are_compared_lexically(tmp_path, command):
    with closing(LlvmReader(tmp_path / "log", command=command)) as none:
        for _ in range(2):
            found = equivalent("llir", _OLD, _NEW, reprint=none.reprint)
            assert not found.equal
            assert "lexical-llir:unavailable" in told(found.findings)
        assert none._deaths >= MAX_DEATHS
