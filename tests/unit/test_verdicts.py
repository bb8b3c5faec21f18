from __future__ import annotations

import pytest

from irdiff.compare import cases, radius, verdicts
from irdiff.compare.verdicts import MachineCode, TextComparison
from irdiff.model import (
    Artifact,
    Compiled,
    Failure,
    FailureKind,
    Pair,
    Sides,
    StageStatus,
    Target,
    Verdict,
)

TARGET = Target(name="sm_90", backend="cuda", arch=90, warp_size=32, title="", facts={}, sources={})
PAIR = Pair(
    id="a/b:c@sm_90",
    launch_id="a/b:c",
    target=TARGET,
    base=None,
    head=None,
    supported=Sides(base=True, head=True),
)


def side(flags: tuple[str, ...] = ("ptxas", "-v"), metadata: dict | None = None, **digests: str) -> Compiled:
    return Compiled(
        entered=(),
        artifacts={
            name: Artifact(stage=name, digest=digest, size_bytes=1) for name, digest in digests.items()
        },
        metadata=metadata or {},
        stage_times_s={},
        assembler_flags=flags,
        assembler_log="",
        notes=(),
    )


def judge_texts(*equal: str, header_equal: bool = True):
    def equivalent(stage: str, ours: Artifact, theirs: Artifact) -> TextComparison:
        return TextComparison(equal=stage in equal, header_equal=header_equal, findings=())

    return equivalent


def test_statuses_are_never_assumed() -> None:
    texts = verdicts.compare_texts(side(ttir="1", ptx="2"), side(ttir="1", llir="3", ptx="4"), judge_texts())
    assert dict(texts.stages) == {
        "ttir": StageStatus.IDENTICAL,
        "ptx": StageStatus.CHANGED,
        "llir": StageStatus.ABSENT,
    }
    assert not texts.same_assembler_input


@pytest.mark.parametrize(
    ("base", "head", "header_equal", "ptxas", "expected"),
    [
        (side(ptx="1"), side(ptx="1"), True, "x", True),
        (side(ptx="1"), side(ptx="2"), True, "x", True),
        (side(ptx="1"), side(ptx="2"), False, "x", False),  # another .version may mean another code
        (side(ptx="1"), side(ptx="1"), True, "y", False),  # another ptxas
        (side(ptx="1"), side(("ptxas", "-v", "-O1"), ptx="1"), True, "x", False),  # other flags
        (side(ptx="1"), side(("other", "-v"), ptx="1"), True, "x", False),  # a ptxas nobody hashed
    ],
)
def test_same_machine_code_by_rule(base, head, header_equal, ptxas, expected) -> None:
    texts = verdicts.compare_texts(base, head, judge_texts("ptx", header_equal=header_equal))
    assert verdicts.by_rule(base, head, texts, {"ptxas": "x"}, {"ptxas": ptxas}) is expected


@pytest.mark.parametrize(
    ("equal", "same", "launch_differs", "verdict", "first"),
    [
        (("ttir", "ptx"), True, False, Verdict.UNCHANGED, None),
        (("ptx",), True, False, Verdict.ABSORBED, "ttir"),
        (("ptx",), False, False, Verdict.CHANGED, "ttir"),
        (("ttir", "ptx"), False, False, Verdict.CHANGED, "sass"),
        (("ttir", "ptx"), True, True, Verdict.CHANGED, "launch"),
    ],
)
def test_machine_code_has_the_last_word(equal, same, launch_differs, verdict, first) -> None:
    texts = verdicts.compare_texts(side(ttir="1", ptx="2"), side(ttir="3", ptx="4"), judge_texts(*equal))
    got, stages, origin = verdicts.judge(
        texts, MachineCode(stage="sass", same=same), launch_differs=launch_differs
    )
    assert (got, origin) == (verdict, first)
    assert stages["sass"] is (StageStatus.EQUIVALENT if same else StageStatus.CHANGED)


def test_without_machine_code_the_last_text_decides() -> None:
    texts = verdicts.compare_texts(
        side(ttir="1", amdgcn="2"), side(ttir="3", amdgcn="4"), judge_texts("ttir")
    )
    verdict, _, first = verdicts.judge(texts, MachineCode(stage=None, same=None), launch_differs=False)
    assert (verdict, first) == (Verdict.CHANGED, "amdgcn")


@pytest.mark.parametrize(
    ("base", "head", "names"),
    [
        ({"shared": 0}, {"shared": 1024}, ("shared",)),
        ({}, {"num_ctas": 1, "cluster_dims": [1, 1, 1], "launch_pdl": False, "tensordesc_meta": []}, ()),
        ({"num_ctas": 1}, {"num_ctas": 2}, ("num_ctas",)),
        ({"num_warps": 4}, {"num_warps": 8}, ("num_warps",)),
        ({"hash": "a"}, {"hash": "b"}, ()),
    ],
)
def test_what_a_launch_passes(base, head, names) -> None:
    assert verdicts.differing_launch(base, head) == names


def failure(kind: FailureKind) -> Failure:
    return Failure(kind=kind, stage="ttgir", message="it failed", signal=None, stderr="")


@pytest.mark.parametrize(
    ("base", "head", "verdict"),
    [
        (None, FailureKind.CRASH, Verdict.BROKEN),
        (None, FailureKind.UNSUPPORTED, Verdict.BROKEN),
        (FailureKind.TIMEOUT, None, Verdict.FIXED),
        (FailureKind.ERROR, FailureKind.ERROR, Verdict.FAILING),
        (FailureKind.UNSUPPORTED, FailureKind.ERROR, Verdict.FAILING),
        (FailureKind.UNSUPPORTED, FailureKind.UNSUPPORTED, Verdict.UNSUPPORTED),
    ],
)
def test_failures(launch, base, head, verdict) -> None:
    from dataclasses import replace

    pair = replace(PAIR, base=launch, head=launch)
    failures = Sides(base=failure(base) if base else None, head=failure(head) if head else None)
    assert cases.failed(pair, failures).verdict is verdict


def test_one_sided(launch) -> None:
    from dataclasses import replace

    assert cases.one_sided(replace(PAIR, head=launch)).verdict is Verdict.ADDED
    assert cases.one_sided(replace(PAIR, base=launch)).verdict is Verdict.REMOVED
    missing = replace(PAIR, head=launch, supported=Sides(base=False, head=True))
    assert cases.one_sided(missing).verdict is Verdict.FIXED


def test_radius_counts_only_what_was_compared(launch) -> None:
    from dataclasses import replace

    pair = replace(PAIR, base=launch, head=launch)
    changed = replace(cases.blank(pair, Verdict.CHANGED), stages={"ttir": StageStatus.CHANGED})
    same = replace(cases.blank(pair, Verdict.UNCHANGED), stages={"ttir": StageStatus.ABSENT})
    summary = radius.summarize([changed, same, cases.blank(pair, Verdict.BROKEN)], [TARGET])
    assert (summary.cases, summary.compared) == (3, 2)
    row = summary.radius["sm_90"]
    assert (row.changed, row.compared, row.fraction) == (1, 2, 0.5)
    assert (row.stages["ttir"].changed, row.stages["ttir"].compared) == (1, 1)
