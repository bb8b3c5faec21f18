"""Which cases are one group, whatever their order, and what a group says of its members."""

import random
from collections import Counter
from dataclasses import replace

import pytest

from irdiff.compare import edits
from irdiff.group import grouping
from irdiff.group.grouping import Description, describe
from irdiff.group.severity import Severity
from irdiff.model import Bits, CaseSummary, Cause, CauseKind, Component, EffectClass, Effects, Sides, Verdict
from irdiff.store import sha256
from tests.unit import runs
from tests.unit.group.edits_of import added, edit, removed
from tests.unit.runs import origin

LAYOUT = "#ttg.blocked<{order = [0], sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4]}>"
FENCE = "ttng.fence_async_shared {bCluster = false}"
ONE_FENCE = edit("ttgir", added("ttng.fence"))


def case(name="a", verdict=Verdict.CHANGED, **changes):
    return runs.case(f"a/x:{name}@sm_90", verdict, **changes)


def loop_of(*body, size=128):
    return [
        "module {",
        "tt.func public @__kernel__(%0: !tt.ptr<f16>) {",
        f"%1 = arith.constant dense<0.0> : tensor<{size}xf32, {LAYOUT}>",
        "%2 = scf.for %3 = %4 to %5 step %6 iter_args(%7 = %1) -> (tensor<4xf32>) {",
        *body,
        *("scf.yield %7 : tensor<4xf32>", "}", "tt.return", "}", "}"),
    ]


def load(number, size=128):
    return f"%{number} = tt.load %0 : tensor<{size}x!tt.ptr<f16>, {LAYOUT}>"


def grouped(rows):
    """Groups, and the group of each case by its name."""
    found, of = grouping.group(map(case, rows), lambda row: describe(row, rows[row.id[4:-6]]))
    return found, {name[4:-6]: group for name, group in of.items()}


# what decides


def test_cases_with_the_same_edit_in_other_shapes_are_one_group():
    groups, of = grouped(
        {
            "a": edits.between("ttgir", loop_of(load(8)), loop_of(FENCE, load(8))),
            "b": edits.between(
                "ttgir", loop_of(load(8, 64), size=64), loop_of(FENCE, FENCE, load(8, 64), size=64)
            ),
            "c": edits.between("ttgir", loop_of(load(8)), loop_of("ttg.barrier local", load(8))),
        }
    )
    assert of["a"] == of["b"] != of["c"]
    fence = next(group for group in groups if group.id == of["a"])
    assert fence.representative == "a/x:a@sm_90"
    assert fence.title == "1 to 2 more `ttng.fence_async_shared` before `tt.load` in the loop"
    assert fence.severity == "instruction mix in loops", "one more fence is waited for, and races nowhere"
    assert fence.likeness == pytest.approx(0.75)
    assert fence.edit == ("+ttng.fence_async_shared",)


def test_lines_that_move_beside_new_ones_are_no_other_change():
    """3.9's fence insertion adds a fence in every kernel, and in some moves one that was there."""
    rows = {
        "added": edits.between("ttgir", loop_of(load(8)), loop_of(FENCE, load(8))),
        "moved": edits.between("ttgir", [FENCE, "ttng.x", load(8)], ["ttng.x", FENCE, load(8), FENCE]),
        "only moved": edits.between("ttgir", [FENCE, "ttng.x", load(8)], ["ttng.x", load(8), FENCE]),
        "removed": edits.between("ttgir", loop_of(FENCE, load(8)), loop_of(load(8))),
    }
    _, of = grouped(rows)
    assert of["added"] == of["moved"]
    assert len(set(of.values())) == 3


def test_other_parameters_of_layouts_are_one_change_whatever_the_kind():
    def other(kind, *more):
        lines = [f"%1 = arith.addf %0, %0 : tensor<4xf32, #ttg.{kind}<{{order = [{n}]}}>>" for n in (0, 1)]
        return edits.between("ttgir", [lines[0], *more], [lines[1]])

    rows = {"mma": other("nvidia_mma"), "linear": other("linear"), "fewer": other("linear", load(2))}
    groups, of = grouped(rows)
    assert of["mma"] == of["linear"] != of["fewer"]
    title = next(group.title for group in groups if group.id == of["mma"])
    assert all(f"`#ttg.{kind}` layout: `order` [0] → [1]" in title for kind in ("nvidia_mma", "linear"))


def test_groups_do_not_depend_on_the_order_of_cases():
    fences = {str(n): [FENCE] * (n % 3) for n in range(12)}
    rows = {
        name: edits.between("ttgir", loop_of(load(8)), loop_of(*f, load(8))) for name, f in fences.items()
    }
    names = list(rows)
    random.Random(1).shuffle(names)
    first, second = grouped(rows), grouped({name: rows[name] for name in names})
    assert first[0] == second[0]
    assert dict(sorted(first[1].items())) == dict(sorted(second[1].items()))


def test_another_stage_or_pass_is_another_group():
    origins = (None, origin(), origin("llir"), origin("ttgir", "One"), origin("ttgir", "Two"))
    keys = [describe(case(origin=made), ONE_FENCE).key for made in origins]
    assert len(set(keys)) == len(keys)
    assert {key[3] for key in keys} == {("+ttng.fence",)}


def test_what_is_shown_does_not_decide_the_group():
    """Acceptances and ids of groups must outlive other words."""
    moved = case(base={"registers": 8}, head={"registers": 9})
    one, other = describe(case(), ONE_FENCE), describe(moved, ONE_FENCE)
    assert one.summary.title != other.summary.title
    assert one.key == other.key


def test_an_absorbed_change_may_share_the_group_of_a_changed_one():
    absorbed, changed = case("b", Verdict.ABSORBED, origin=origin()), case("c", origin=origin())
    ((both,), _) = grouping.group([absorbed, changed], lambda row: describe(row, ONE_FENCE))
    assert (both.representative, both.severity) == (changed.id, "not understood"), (
        "the one whose code changed"
    )
    ((alone,), _) = grouping.group([absorbed], lambda row: describe(row, ONE_FENCE))
    assert (alone.representative, alone.severity) == (absorbed.id, "absorbed")


def test_only_cases_whose_code_changed_or_failed_are_grouped():
    rows = [case(verdict.value, verdict) for verdict in Verdict]
    _, of = grouping.group(rows, lambda row: describe(row, edit("ttgir", removed("tt.load %0"))))
    assert {name[4:-6] for name in of} == {"changed", "absorbed", "broken", "fixed"}


# failures, and cases without texts


def failing(message):
    return replace(runs.FAILURE, message=message)


def test_broken_cases_group_by_their_message_and_come_first():
    rows = [
        case(name, Verdict.BROKEN, failures=Sides(base=None, head=failing(f"failed at {path}")))
        for name, path in (("b", "/x/1"), ("c", "/y/22"))
    ]
    fixed = case("d", Verdict.FIXED, failures=Sides(base=failing("failed at /x/1"), head=None))
    groups, _ = grouping.group([case("a"), *rows, fixed], lambda row: describe(row, None))
    assert (groups[0].severity, groups[0].members) == ("broken", tuple(row.id for row in rows))
    assert len(groups) == 3, "being fixed is another group"


CUT = failing("cannot fit 0x1f of '/x/y' in 64")


def test_without_texts_a_case_is_described_by_what_is_known_to_differ():
    for subject, lines in (
        (
            case(verdict=Verdict.BROKEN, failures=Sides(base=None, head=CUT)),
            ["+error in ttgir: cannot fit … of … in …"],
        ),
        (
            case(verdict=Verdict.FIXED, failures=Sides(base=CUT, head=None)),
            ["-error in ttgir: cannot fit … of … in …"],
        ),
        (
            case(verdict=Verdict.BROKEN, failures=Sides(base=failing("old"), head=failing("new"))),
            ["+error in ttgir: new"],
        ),
        (
            case(verdict=Verdict.BROKEN, failures=Sides(base=None, head=None), origin=origin("llir")),
            ["+llir: no text differs"],
        ),
        (case(origin=origin("sass")), ["+sass: no text differs"]),
        (case(origin=None), ["+machine code: no text differs"]),
        (
            case(origin=origin("launch"), findings=runs.findings("launch-differs:num_warps")),
            ["+launch-differs:num_warps"],
        ),
        (
            case(
                origin=origin("asm"),
                findings=runs.findings("inferred-attributes-only", "not-compared:asm,ttir"),
            ),
            ["+not-compared:asm,ttir"],
        ),
    ):
        found = describe(subject, None)
        assert (list(found.counts), found.size) == (lines, 1)


# what a group says


def described(*lines, score=1.0, severity="resources", of="P"):
    cause = Cause.uncounted(CauseKind.STATE, f"one of {len(lines)} lines")
    reasons = (f"because {score}",)
    return Description(
        key=("changed", "ttgir", of, ("+x",)),
        counts=Counter(lines),
        size=len(lines),
        summary=CaseSummary(title="", severity=severity, score=score, reasons=reasons, causes=(cause,)),
    )


def groups_of(origins=None, **rows):
    made = [case(name, origin=(origins or {}).get(name)) for name in rows]
    return list(grouping.group(made, lambda row: rows[row.id[4]])[0])


def test_the_smallest_edit_stands_for_the_group_and_the_gravest_ranks_it():
    parts = {"a": Component.PTXAS, "b": Component.FRONTEND, "c": Component.PTXAS}
    (made,) = groups_of(
        {name: origin("ttgir", "P", part) for name, part in parts.items()},
        a=described("+x", "+x", "+x", score=9.0, severity="other"),
        b=described("+x", "+y", score=5.0),
        c=described("+x", score=2.0),
    )
    assert made.representative == "a/x:c@sm_90"
    assert (made.severity, made.score, made.reasons) == ("resources", 5.0, ("because 5.0",))
    assert (made.edit, made.origin_stage, made.pass_name) == (("+x",), "ttgir", "P")
    assert made.charged == (Component.FRONTEND, Component.PTXAS)
    assert made.likeness == round((1 / 3 + 1 / 2 + 1) / 3, 4)
    assert len(made.id) == 16


def test_lines_of_one_operation_stand_together_what_is_gone_first_and_are_bounded():
    (made,) = groups_of(a=described("+b", "-b", "+a", "-c", "-a"))
    assert made.edit == ("-a", "+a", "-b", "+b", "-c")
    lines = [f"+{n:04d}" for n in range(grouping.MAX_EDIT_LINES + 1)]
    (made,) = groups_of(a=described(*lines))
    assert made.edit == tuple(lines[:-1])


def test_groups_come_by_class_then_score_then_size():
    found = groups_of(
        a=described("+x", score=5.0, of="small"),
        b=described("+x", score=5.0, of="large"),
        c=described("+x", score=5.0, of="large"),
        d=described("+x", score=4.0, of="low"),
        e=described("+x", score=1.0, severity="wrong-result risk", of="grave"),
        f=described("+x", score=9.0, severity="other", of="light"),
    )
    assert [group.members[0][4] for group in found] == ["e", "b", "a", "d", "f"]


@pytest.mark.parametrize(
    ("charged", "edited", "same_compiler", "severity"),
    [
        (Component.PROGRAM, "source", False, Severity.OTHER_RESULT),
        (Component.FRONTEND, "edited", False, Severity.OTHER_RESULT),
        (Component.FRONTEND, "source", False, Severity.WRONG_RESULT),
        (Component.TTGIR_PASSES, "edited", False, Severity.WRONG_RESULT),
        (Component.TTGIR_PASSES, "edited", True, Severity.OTHER_RESULT),
        (Component.TTGIR_PASSES, "source", True, Severity.WRONG_RESULT),
    ],
)
def test_another_result_that_an_edited_source_asks_for_is_no_error_of_a_compiler(
    charged, edited, same_compiler, severity
):
    launches = Sides(base="source", head=edited).map(
        lambda of: runs.launch("a/x:a@sm_90", source_digest=sha256(of.encode()), digest=of)
    )
    effects = Effects(kind=EffectClass.FLOAT, stage="ptx", said=("constant 2 → 3",), bits=Bits.MAY_DIFFER)
    cause = Cause(kind=CauseKind.EFFECT, subject="constant", count=1, in_loops=0, ahead="", detail="2 → 3")
    made = case(origin=origin("ttir", None, charged))
    found = describe(made, None, launches, (effects, cause), same_compiler=same_compiler)
    assert found.summary.severity == severity
