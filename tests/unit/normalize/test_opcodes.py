"""Texts read side by side: pieces are stripped as the whole is, and reading ends where operations differ."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irdiff.normalize import amdgcn, canonicalize, equivalent, llir, mlir, ptx
from irdiff.normalize.opcodes import differing_part, read_together
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
        assert not found.same


def test_reading_ends_at_the_first_difference() -> None:
    text = of_stage("ptx", release="3.9.0")[0].text
    at = text.index("ld.param")
    found = read_together("ptx", text, text[:at] + text[at:].replace("ld.param", "ld.const", 1), ptx.strip)
    assert not found.same
    assert len(found.base) < len(canonicalize("ptx", text).text) / 2


def test_texts_without_an_operation_are_left_to_the_full_form() -> None:
    assert not read_together("ptx", "hello\n" * 900, "world\n" * 900, ptx.strip).shown


_LINES = st.lists(st.sampled_from(["", "a", "ab", "ba", "aab"]), max_size=6).map("\n".join)


@given(_LINES, _LINES)
def test_what_is_the_same_on_both_sides_is_cut_off_in_whole_lines(base: str, head: str) -> None:
    ours, theirs = differing_part(base, head)
    assert base[: ours.start] == head[: theirs.start]
    assert base[ours.stop :] == head[theirs.stop :]
    for text, part in ((base, ours), (head, theirs)):
        assert part.start <= part.stop
        assert part.start == 0 or text[part.start : part.start + 1] in ("\n", "")
        assert text[part.stop : part.stop + 1] in ("\n", "")


def test_of_long_texts_little_is_left() -> None:
    text = of_stage("llir", release="3.9.0")[0].text
    lines = text.split("\n")
    other = "\n".join([*lines[:40], "  fence seq_cst", *lines[40:]])
    ours, theirs = differing_part(text, other)
    assert (text[ours], other[theirs]) == ("", "\n  fence seq_cst")


@pytest.mark.parametrize("stage", ["llir", "ptx", "amdgcn"])
def test_a_text_of_which_only_a_part_is_read_is_judged_as_a_whole(stage: str) -> None:
    random = Random(9)
    for artifact in of_stage(stage)[::3]:
        text = artifact.text
        for _ in range(3):
            other = mutate_lines(text, random)
            same = canonicalize(stage, text).lines == canonicalize(stage, other).lines
            assert equivalent(stage, text, other).equal == same, artifact.name


def test_a_part_that_what_is_before_gives_a_meaning_is_read_with_it() -> None:
    head, add = "\t.version 8.0\n\tret;\n", "\tadd.s32 %r1, %r2, %r3;\n"
    for text in (
        head + f"/*\n{add}*/\n" + add,
        head + f"\t.section\t.debug_x\n\t{{\n{add}\t}}\n" + add,
        f"/*\n{add}\n{add}*/\n" + head + add,
    ):
        assert equivalent("ptx", text, text.replace("add", "sub", 1)).equal
        assert not equivalent("ptx", text, text[::-1].replace("dda", "bus", 1)[::-1]).equal


def test_an_operation_of_ptx_with_colons_in_its_name_is_one() -> None:
    text = of_stage("ptx", release="3.9.0")[0].text
    other = text.replace("\tret;", "\tfence.proxy.async.shared::cta;\n\tret;", 1)
    assert not read_together("ptx", text, other, ptx.strip).same


def mutate_lines(text: str, random: Random) -> str:
    """One line without its debug location, in a comment, dropped, doubled, or with another first number."""
    lines = text.split("\n")
    at = random.randrange(len(lines))
    line = lines[at]
    changed = random.choice(
        [
            [line.partition(", !dbg")[0]],
            ["; " + line],
            [],
            [line, line],
            [line.replace("1", "7", 1)],
            [line + " ; x"],
        ]
    )
    return "\n".join([*lines[:at], *changed, *lines[at + 1 :]])
