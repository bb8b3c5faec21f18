"""A verdict of sameness rests on evidence: without it no case is unchanged."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from irdiff.compare import verdicts
from irdiff.compare.verdicts import Binaries, LastTexts, NotCompared, StageComparison, TextComparison
from irdiff.findings import Finding, FindingKind
from irdiff.model import Artifact, Assembler, Compiled, StageStatus, Verdict
from tests.unit.findings import findings, told

IDENTICAL, EQUIVALENT, CHANGED, ABSENT = StageStatus


def side(notes: tuple[str, ...] = (), assembler: Assembler | None = None, **digests: str) -> Compiled:
    return Compiled(
        handed={},
        artifacts={
            name: Artifact(stage=name, digest=digest, size_bytes=1) for name, digest in digests.items()
        },
        metadata={},
        stage_times_s={},
        stage_cpu_s={},
        assembler=assembler,
        assembler_log="",
        notes=notes,
    )


def judge_texts(*equal: str):
    def equivalent(stage: str, ours: str, theirs: str) -> TextComparison:
        assert ours != theirs, "equal bytes are not compared as texts"
        return TextComparison(
            equal=stage in equal,
            header_equal=True,
            findings=(Finding(FindingKind.NOT_NORMALIZED, stage),) * 2,
        )

    return equivalent


def texts(**stages: StageStatus) -> StageComparison:
    return StageComparison(stages=stages, findings=())


def test_statuses_are_never_assumed() -> None:
    found = verdicts.compare_texts(
        side(source="0", ttir="1", ttgir="5", ptx="2", cubin="7"),
        side(ttir="1", ttgir="6", llir="3", ptx="4", cubin="8"),
        judge_texts("ttgir"),
    )
    assert dict(found.stages) == {"ttir": IDENTICAL, "ttgir": EQUIVALENT, "ptx": CHANGED, "llir": ABSENT}
    assert told(found.findings) == ("not-normalized:ttgir", "not-normalized:ptx")


# evidence


@pytest.mark.parametrize(
    ("base", "head", "expected"),
    [
        (side(ttir="1", asm="2"), side(ttir="1", asm="3"), LastTexts(stage="asm", why="no-binary")),
        (side(ttir="1", asm="2"), side(ttir="1", npuasm="2"), NotCompared(base="asm", head="npuasm")),
        (side(ttir="1", asm="2"), side(ttir="1"), NotCompared(base="asm", head="ttir")),
        (side(ttir="1"), side(ttir="1", asm="2"), NotCompared(base="ttir", head="asm")),
        (side(), side(), NotCompared(base="nothing", head="nothing")),
        (side(ttir="1"), side(), NotCompared(base="ttir", head="nothing")),
        (side(source="1"), side(source="1"), NotCompared(base="source", head="source")),
        (side(ptx="1", cubin="2"), side(ptx="1"), NotCompared(base="cubin", head="ptx")),
        (side(amdgcn="1"), side(amdgcn="1", hsaco="2"), NotCompared(base="amdgcn", head="hsaco")),
        (side(ptx="1", cubin="2"), side(amdgcn="1", hsaco="2"), NotCompared(base="cubin", head="hsaco")),
        (
            side(("no-linker",), amdgcn="1"),
            side(amdgcn="1", hsaco="2"),
            LastTexts(stage="amdgcn", why="no-linker"),
        ),
        (
            side(("no-linker",), amdgcn="1"),
            side(("no-linker",), llir="1"),
            NotCompared(base="amdgcn", head="llir"),
        ),
        (side(("no-linker",)), side(("no-linker",)), NotCompared(base="nothing", head="nothing")),
    ],
)
def test_what_there_is_to_compare_without_binaries(base: Compiled, head: Compiled, expected: object) -> None:
    assert verdicts.shared_binary(base, head) is None
    assert verdicts.without_binaries(base, head) == expected


def test_binaries_of_one_kind_are_compared() -> None:
    assert verdicts.shared_binary(side(ptx="1", cubin="2"), side(cubin="3")) == "cubin"
    assert verdicts.shared_binary(side(amdgcn="1", hsaco="2"), side(hsaco="3")) == "hsaco"


_PTXAS = Assembler(digest="x", flags=("-v",))


@pytest.mark.parametrize(
    ("base", "head", "expected"),
    [
        (_PTXAS, _PTXAS, True),
        (_PTXAS, Assembler(digest="y", flags=("-v",)), False),
        (_PTXAS, Assembler(digest="x", flags=("-v", "-O1")), False),
        (Assembler(digest=None, flags=()), Assembler(digest=None, flags=()), False),  # a ptxas nobody hashed
        (None, _PTXAS, False),
        (_PTXAS, None, False),
    ],
)
def test_the_same_assembler(base: Assembler | None, head: Assembler | None, expected: bool) -> None:
    ours, theirs = side(assembler=base, ptx="1"), side(assembler=head, ptx="1")
    assert verdicts.same_assembler(ours, theirs) is expected


def test_every_kind_of_evidence_but_binaries_is_told() -> None:
    assert verdicts.findings_of(
        Binaries(stage="sass", same=True, findings=findings("reordered-only"))
    ) == findings("reordered-only")
    assert told(verdicts.findings_of(LastTexts(stage="asm", why="no-binary"))) == (
        "machine-code-as-text:no-binary",
    )
    assert told(verdicts.findings_of(NotCompared(base="asm", head="npuasm"))) == ("not-compared:asm,npuasm",)


# verdicts


@pytest.mark.parametrize(
    ("ttir", "ptx", "same", "launch_differs", "verdict", "first"),
    [
        (IDENTICAL, EQUIVALENT, True, False, Verdict.UNCHANGED, None),
        (CHANGED, EQUIVALENT, True, False, Verdict.ABSORBED, "ttir"),
        (CHANGED, CHANGED, True, False, Verdict.ABSORBED, "ttir"),
        (CHANGED, EQUIVALENT, False, False, Verdict.CHANGED, "ttir"),
        (IDENTICAL, EQUIVALENT, False, False, Verdict.CHANGED, "sass"),
        (IDENTICAL, EQUIVALENT, True, True, Verdict.CHANGED, "launch"),
        (CHANGED, EQUIVALENT, True, True, Verdict.CHANGED, "ttir"),
    ],
)
def test_machine_code_has_the_last_word(ttir, ptx, same, launch_differs, verdict, first) -> None:
    evidence = Binaries(stage="sass", same=same, findings=())
    found = verdicts.judge(texts(ttir=ttir, ptx=ptx), evidence, launch_differs=launch_differs)
    assert (found[0], found[2]) == (verdict, first)
    assert found[1]["sass"] is (EQUIVALENT if same else CHANGED)


def test_code_objects_are_reported_under_their_assembly() -> None:
    same = Binaries(stage="amdgcn", same=True, findings=())
    assert verdicts.judge(texts(amdgcn=IDENTICAL), same, launch_differs=False)[1]["amdgcn"] is IDENTICAL
    other = replace(same, same=False)
    found = verdicts.judge(texts(amdgcn=IDENTICAL), other, launch_differs=False)
    assert (found[0], found[1]["amdgcn"], found[2]) == (Verdict.CHANGED, CHANGED, "amdgcn")


@pytest.mark.parametrize(
    ("asm", "verdict"),
    [
        (IDENTICAL, Verdict.ABSORBED),
        (EQUIVALENT, Verdict.ABSORBED),
        (CHANGED, Verdict.CHANGED),
        (ABSENT, Verdict.CHANGED),
    ],
)
def test_the_last_texts_decide_where_there_are_no_binaries(asm: StageStatus, verdict: Verdict) -> None:
    evidence = LastTexts(stage="asm", why="no-binary")
    assert verdicts.judge(texts(ttir=CHANGED, asm=asm), evidence, launch_differs=False)[0] is verdict
    assert verdicts.judge(texts(ttir=IDENTICAL), evidence, launch_differs=False)[0] is Verdict.CHANGED


@pytest.mark.parametrize(
    ("stages", "ends", "first", "machine"),
    [
        ({"ttir": IDENTICAL, "asm": ABSENT, "npuasm": ABSENT}, ("asm", "npuasm"), "asm", {}),
        ({"ttir": CHANGED, "asm": ABSENT}, ("asm", "ttir"), "ttir", {}),
        ({"ttir": IDENTICAL}, ("nothing", "nothing"), "code", {}),
        ({"ptx": IDENTICAL}, ("cubin", "ptx"), "sass", {"sass": ABSENT}),
        ({"amdgcn": IDENTICAL}, ("amdgcn", "hsaco"), "amdgcn", {"amdgcn": ABSENT}),
    ],
)
def test_what_was_not_compared_is_not_the_same(stages, ends, first, machine) -> None:
    evidence = NotCompared(base=ends[0], head=ends[1])
    found = verdicts.judge(texts(**stages), evidence, launch_differs=False)
    assert (found[0], found[2]) == (Verdict.CHANGED, first)
    assert {**stages, **machine} == found[1], "no machine stage is called identical"


STAGES = ("ttir", "ptx", "cubin", "amdgcn", "hsaco", "asm")


@pytest.mark.parametrize("wanted", [(), ("ttir",), ("ptx",), ("sass",), ("llir", "npuasm")])
def test_absence_is_never_sameness_whatever_stages_are_selected(wanted: tuple[str, ...]) -> None:
    """All sets of stages that two sides can have, each stage the same on both sides where both have it."""
    sets = [chosen for n in range(4) for chosen in itertools.combinations(STAGES, n)]
    for ours, theirs in itertools.product(sets, sets):
        base, head = (side(**dict.fromkeys(names, "1")) for names in (ours, theirs))
        seen = verdicts.with_stages(base, head, wanted) if wanted else (base, head)
        found = verdicts.compare_texts(*seen, judge_texts())
        binary = verdicts.shared_binary(*seen)
        if binary:
            assert binary in ours and binary in theirs
            continue
        evidence = verdicts.without_binaries(*seen)
        verdict, _, first = verdicts.judge(found, evidence, launch_differs=False)
        ends = (ours[-1:], theirs[-1:])
        assert (verdict is Verdict.UNCHANGED) == (
            ends[0] == ends[1] != () and ends[0][0] not in {"cubin", "hsaco"}
        )
        assert first is not None or verdict is Verdict.UNCHANGED


def test_selected_stages_keep_those_that_the_verdict_rests_on() -> None:
    base, head = side(ttir="1", llir="1", asm="1"), side(ttir="1", llir="1", asm="2", npuasm="1")
    ours, theirs = verdicts.with_stages(base, head, ("llir",))
    assert list(ours.artifacts) == ["llir", "asm"]
    assert list(theirs.artifacts) == ["llir", "asm", "npuasm"]


def test_the_text_that_an_assembler_is_given_is_kept_whatever_is_selected() -> None:
    """Without it nobody could say whether another machine code is the assembler's own."""
    whole = side(ttir="1", llir="2", ptx="3", npuasm="4")
    for kept in verdicts.with_stages(whole, whole, ["ttir"]):
        assert list(kept.artifacts) == ["ttir", "ptx", "npuasm"]
