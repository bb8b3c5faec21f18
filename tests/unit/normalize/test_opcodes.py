"""Texts read side by side: pieces are stripped as the whole is, and reading ends where operations differ."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from irdiff.normalize import amdgcn, canonicalize, equivalent, llir, mlir, ptx
from irdiff.normalize.opcodes import read_together
from tests.mutation.artifacts import of_stage
from tests.mutation.fuzz import mutate

STRIP = {
    "llir": llir.strip,
    "ptx": ptx.strip,
    "amdgcn": amdgcn.strip,
    "ttgir": mlir.strip,
    "ttir": mlir.strip,
}


@pytest.mark.parametrize(("stage", "strip"), STRIP.items(), ids=STRIP)
def test_pieces_give_the_stripped_text(stage: str, strip: Callable[[str], str]) -> None:
    random = Random(3)
    for artifact in of_stage(stage)[::3]:
        for text in (artifact.text, mutate(artifact.text, random)):
            found = read_together(stage, text, text, strip)
            if found:
                assert found.same
                assert found.base == found.head == strip(text), artifact.name


@pytest.mark.parametrize(
    ("stage", "text"),
    [
        ("ptx", "\tadd.s32 %r1, %r2, %r3;\n" * 400 + "/*\n" + "\tret;\n" * 900 + "*/\n\tret;\n"),
        (
            "ptx",
            "\tadd.s32 %r1, %r2, %r3;\n" * 400 + "\t.section\t.debug_x {\n" + "\t.b8 1\n" * 900 + "\t}\n",
        ),
        ("amdgcn", "\ts_nop 0\n" * 900 + "\t.section\t.debug_x\n" + "\ts_nop 0\n" * 900 + "\t.text\n"),
        ("amdgcn", "\t.cfi_sections .debug_frame\n" + "\ts_nop 0\n" * 900),
    ],
)
def test_what_spans_lines_is_not_cut(stage: str, text: str) -> None:
    strip = STRIP[stage]
    found = read_together(stage, text, text, strip)
    assert found
    assert found.base == strip(text)


@pytest.mark.parametrize("stage", STRIP)
def test_an_operation_more_at_the_very_end_is_seen(stage: str) -> None:
    more = {
        "llir": "  ret void",
        "ptx": "\tret;",
        "amdgcn": "\t.text\n\ts_nop 0",
        "ttgir": "tt.return",
        "ttir": "tt.return",
    }
    text = max((artifact.text for artifact in of_stage(stage, release="3.9.0")), key=len)
    longer = f"{text}\n{more[stage]}"
    for base, head in ((text, longer), (longer, text)):
        assert not equivalent(stage, base, head).equal
        found = read_together(stage, base, head, STRIP[stage])
        assert found
        assert not found.same


def test_reading_ends_at_the_first_difference() -> None:
    text = of_stage("ptx", release="3.9.0")[0].text
    at = text.index("ld.param")
    found = read_together("ptx", text, text[:at] + text[at:].replace("ld.param", "ld.const", 1), ptx.strip)
    assert found
    assert not found.same
    assert len(found.base) < len(canonicalize("ptx", text).text) / 2


def test_texts_without_an_operation_are_left_to_the_full_form() -> None:
    assert read_together("ptx", "hello\n" * 900, "world\n" * 900, ptx.strip) is None
