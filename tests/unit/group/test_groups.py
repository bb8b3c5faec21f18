"""What of a case decides its group, and what a group says of its members."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from irdiff.compare.edits import Edit
from irdiff.group import grouping
from irdiff.group.grouping import Description, describe
from irdiff.model import (
    Case,
    CaseSummary,
    Cause,
    CauseKind,
    ChangeGroup,
    Component,
    Failure,
    FailureKind,
    Origin,
    Sides,
    Verdict,
)
from tests.unit.group.edits_of import added, edit, removed

FENCE = edit("ttgir", added("ttng.fence"))


def origin(stage: str = "ttgir", name: str | None = None, *charged: Component) -> Origin:
    return Origin(stage=stage, pass_name=name, masked=(), charged=charged, note="")


def failure(message: str, stage: str = "ttgir") -> Failure:
    return Failure(kind=FailureKind.ERROR, stage=stage, message=message, signal=None, stderr="")


def case(build: Any, name: str = "a", verdict: Verdict = Verdict.CHANGED, **changes: Any) -> Case:
    made: Case = build.case(f"a/x:{name}@sm_90", verdict, **changes)
    return made


def groups(*rows: tuple[Case, Edit | None]) -> tuple[ChangeGroup, ...]:
    of = {case.id: found for case, found in rows}
    return grouping.group([case for case, _ in rows], lambda case: describe(case, of[case.id]))[0]


# what decides


def test_another_stage_or_pass_is_another_group(build: Any) -> None:
    keys = [
        describe(case(build, origin=made), FENCE).key
        for made in (None, origin(), origin("llir"), origin("ttgir", "One"), origin("ttgir", "Two"))
    ]
    assert [key[:3] for key in keys] == [
        ("changed", "", ""),
        ("changed", "ttgir", ""),
        ("changed", "llir", ""),
        ("changed", "ttgir", "One"),
        ("changed", "ttgir", "Two"),
    ]
    assert {key[3] for key in keys} == {("+ttng.fence",)}


def test_an_absorbed_change_may_share_the_group_of_a_changed_one(build: Any) -> None:
    (made,) = groups(
        (case(build, "b", Verdict.ABSORBED, origin=origin()), FENCE),
        (case(build, "c", origin=origin()), FENCE),
    )
    assert made.members == ("a/x:b@sm_90", "a/x:c@sm_90")
    assert made.representative == "a/x:c@sm_90", "the one whose code changed"
    assert made.severity == "other"
    (alone,) = groups((case(build, "b", Verdict.ABSORBED, origin=origin()), FENCE))
    assert (alone.representative, alone.severity) == ("a/x:b@sm_90", "absorbed")


def test_breaking_and_being_fixed_by_one_message_are_two_groups(build: Any) -> None:
    told = failure("cannot fit 0x1f of '/x/y' in 64")
    broken = case(build, "b", Verdict.BROKEN, failures=Sides(base=None, head=told))
    fixed = case(build, "f", Verdict.FIXED, failures=Sides(base=told, head=None))
    rows = [describe(row, None) for row in (broken, fixed)]
    assert [row.key[0] for row in rows] == ["broken", "fixed"]
    assert [list(row.counts) for row in rows] == [
        ["+error in ttgir: cannot fit … of … in …"],
        ["-error in ttgir: cannot fit … of … in …"],
    ]
    assert [row.size for row in rows] == [1, 1]


def test_a_failure_of_head_is_told_before_one_of_base(build: Any) -> None:
    both = Sides(base=failure("old"), head=failure("new"))
    assert list(describe(case(build, verdict=Verdict.BROKEN, failures=both), None).counts) == [
        "+error in ttgir: new"
    ]


def test_a_changed_case_is_not_described_by_a_failure(build: Any) -> None:
    odd = case(build, failures=Sides(base=None, head=failure("x")))
    assert list(describe(odd, FENCE).counts) == ["+ttng.fence"]


def test_a_broken_case_without_a_failure_is_described_by_what_is_known(build: Any) -> None:
    broken = case(build, verdict=Verdict.BROKEN, failures=Sides(base=None, head=None), origin=origin("llir"))
    assert list(describe(broken, None).counts) == ["+llir: no text differs"]


@pytest.mark.parametrize(
    ("findings", "made", "lines"),
    [
        ((), origin("sass"), ["+sass: no text differs"]),
        ((), None, ["+machine code: no text differs"]),
        (("launch-differs:num_warps",), origin("launch"), ["+launch-differs:num_warps"]),
        (("reordered-only", "not-compared:asm,ttir"), origin("asm"), ["+not-compared:asm,ttir"]),
    ],
)
def test_without_texts_a_case_is_described_by_what_is_known_to_differ(
    build: Any, findings: tuple[str, ...], made: Origin | None, lines: list[str]
) -> None:
    described = describe(case(build, origin=made, findings=build.findings(*findings)), None)
    assert list(described.counts) == lines


# what a group says


def described(*lines: str, score: float = 1.0, severity: str = "resources") -> Description:
    return Description(
        key=("changed", "ttgir", "P", ("+x",)),
        counts=Counter(lines),
        size=len(lines),
        summary=CaseSummary(
            title=f"{len(lines)} lines",
            severity=severity,
            score=score,
            reasons=(f"because {score}",),
            causes=(Cause.uncounted(CauseKind.STATE, f"one of {len(lines)} lines"),),
        ),
    )


def of(build: Any, **rows: Description) -> ChangeGroup:
    made = [
        case(build, name, origin=origin("ttgir", "P", component))
        for name, component in zip(rows, [Component.PTXAS, Component.FRONTEND, Component.PTXAS], strict=False)
    ]
    found, ids = grouping.group(made, lambda row: rows[row.id[4]])
    assert set(ids.values()) == {found[0].id}
    assert len(found) == 1
    return found[0]


def test_the_smallest_edit_stands_for_the_group_and_the_gravest_ranks_it(build: Any) -> None:
    made = of(
        build,
        a=described("+x", "+x", "+x", score=9.0, severity="other"),
        b=described("+x", "+y", score=5.0),
        c=described("+x", score=2.0),
    )
    assert made.representative == "a/x:c@sm_90"
    assert (made.severity, made.score, made.reasons) == ("resources", 5.0, ("because 5.0",))
    assert made.edit == ("+x",)
    assert (made.origin_stage, made.pass_name) == ("ttgir", "P")
    assert made.charged == (Component.FRONTEND, Component.PTXAS)
    assert made.likeness == round((1 / 3 + 1 / 2 + 1) / 3, 4)
    assert len(made.id) == 16


def test_the_title_holds_for_every_member_not_for_the_smallest_alone(build: Any) -> None:
    two = edit("ttgir", added("ttng.fence"), added("ttng.fence", depth=1))
    (made,) = groups((case(build, "a", origin=origin()), FENCE), (case(build, "b", origin=origin()), two))
    assert made.title == "1 to 2 more `ttng.fence` (in the loop in 1 of 2 cases)"


def test_what_is_told_does_not_decide_the_group(build: Any) -> None:
    """Acceptances and ids of groups must outlive other words."""
    one, other = (
        case(build, origin=origin()),
        case(build, origin=origin(), base={"registers": 8}, head={"registers": 9}),
    )
    rows = [describe(row, FENCE) for row in (one, other)]
    assert rows[0].summary.title != rows[1].summary.title
    assert rows[0].key == rows[1].key


def test_members_without_lines_are_alike(build: Any) -> None:
    assert of(build, a=described(), b=described()).likeness == 1.0


def test_lines_of_one_operation_stand_together_what_is_gone_first(build: Any) -> None:
    made = of(build, a=described("+b", "-b", "+a", "-c", "-a"))
    assert made.edit == ("-a", "+a", "-b", "+b", "-c")


def test_a_group_shows_no_more_lines_than_anybody_reads(build: Any) -> None:
    lines = [f"+{n:04d}" for n in range(grouping.MAX_EDIT_LINES + 1)]
    assert of(build, a=described(*lines)).edit == tuple(lines[:-1])


def test_a_group_without_an_origin_has_no_stage(build: Any) -> None:
    (made,) = groups((case(build, origin=None), FENCE))
    assert (made.origin_stage, made.pass_name, made.charged) == ("", None, ())


def test_groups_come_by_class_then_score_then_size(build: Any) -> None:
    def ranked(name: str, severity: str, score: float) -> Description:
        return replace(described("+x", severity=severity, score=score), key=("changed", name, "", ()))

    rows = {
        "a": ranked("small", "resources", 5.0),
        "b": ranked("large", "resources", 5.0),
        "c": ranked("large", "resources", 5.0),
        "d": ranked("low", "resources", 4.0),
        "e": ranked("grave", "wrong-result risk", 1.0),
        "f": ranked("light", "other", 9.0),
    }
    found, _ = grouping.group([case(build, name) for name in rows], lambda row: rows[row.id[4]])
    assert [group.members[0][4] for group in found] == ["e", "b", "a", "d", "f"]


def test_only_cases_whose_code_changed_or_failed_are_grouped(build: Any) -> None:
    cases = [case(build, verdict.value, verdict) for verdict in Verdict]
    _, of_case = grouping.group(cases, lambda row: describe(row, removed_line()))
    assert {name[4:].partition("@")[0] for name in of_case} == {"changed", "absorbed", "broken", "fixed"}


def removed_line() -> Edit:
    return edit("ttgir", removed("tt.load %0"))
