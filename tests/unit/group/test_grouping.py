"""Which cases are one group, whatever their order, and what a group says of its members."""

import random
from collections import Counter
from dataclasses import replace

import pytest

from irdiff.compare import edits
from irdiff.group import grouping, report_classes
from irdiff.group.grouping import Description, describe
from irdiff.group.report_classes import ReportClass
from irdiff.model import (
    Bits,
    CaseSummary,
    Cause,
    CauseKind,
    Component,
    Effects,
    Meaning,
    Rounding,
    RoundingKind,
    Sides,
    Verdict,
    Witness,
)
from tests.unit import runs
from tests.unit.golden import golden, recorded
from tests.unit.group.edits_of import edit
from tests.unit.runs import origin

GOLDEN = golden("groups")


def case(name="a", verdict=Verdict.CHANGED, **changes):
    return runs.case(f"a/x:{name}@sm_90", verdict, **changes)


def loop_of(body, size=128):
    return [
        *("module {", "tt.func public @__kernel__(%0: !tt.ptr<f16>) {"),
        f"%1 = arith.constant dense<0.0> : tensor<{size}xf32, LAYOUT>",
        "%2 = scf.for %3 = %4 to %5 step %6 iter_args(%7 = %1) -> (tensor<4xf32>) {",
        *(*body, "scf.yield %7 : tensor<4xf32>", "}", "tt.return", "}", "}"),
    ]


def edit_of(row):
    if "lines" in row:
        return edit("ttgir", *row["lines"])
    if "body" in row:
        base, head = (loop_of(body, row.get("size", 128)) for body in row["body"])
    elif "base" in row:
        base, head = row["base"], row["head"]
    else:
        return None
    sides = ([line.replace("LAYOUT", GOLDEN["layout"]) for line in side] for side in (base, head))
    return edits.between("ttgir", *sides)


def case_of(row):
    base, head = (
        replace(runs.FAILURE, message=row[side]) if side in row else None
        for side in ("base_fails", "head_fails")
    )
    facts = row.get("facts", ({}, {}))
    made = case(row["name"], Verdict(row.get("verdict", "changed")), base=facts[0], head=facts[1])
    begins = origin(*row["origin"]) if "origin" in row else None
    found = runs.findings(*row.get("findings", ()))
    return replace(made, origin=begins, findings=found, failures=Sides(base=base, head=head))


def grouped(rows):
    of = {row["name"]: edit_of(row) for row in rows}
    return runs.change_groups([(case_of(row), describe(case_of(row), of[row["name"]])) for row in rows])


@pytest.mark.parametrize("order", [None, 1])
def test_which_cases_are_one_group_whatever_their_order(order):
    said = []
    for scenario in GOLDEN["groups"]:
        rows = scenario["cases"]
        groups = grouped(random.Random(order).sample(rows, len(rows)) if order else rows)
        said.append(scenario["why"])
        for row in groups:
            names = " ".join(name[4:-6] for name in row.members)
            said.append(f"    {names}, by {row.representative[4:-6]}: {row.severity}")
            said.append(f"        {'; '.join(row.edit)}, {row.similarity:.4g} alike: {row.title}")
    recorded("groups.txt", "\n".join([*said, ""]))


def described(*lines, severity="rounding", of="P"):
    cause = Cause.uncounted(CauseKind.STATE, f"one of {len(lines)} lines")
    reasons = (f"{severity} of {len(lines)} lines",)
    return Description(
        key=("changed", "ttgir", of, ("+x",)),
        counts=Counter(lines),
        size=len(lines),
        summary=CaseSummary(title="", severity=severity, reasons=reasons, causes=(cause,)),
    )


def groups_of(origins=None, noise=None, **rows):
    made = [case(name, origin=(origins or {}).get(name)) for name in rows]
    return runs.change_groups(list(zip(made, rows.values(), strict=True)), noise)


def test_the_smallest_edit_of_the_gravest_class_stands_for_the_group():
    parts = {"a": Component.PTXAS, "b": Component.FRONTEND, "c": Component.PTXAS}
    (made,) = groups_of(
        {name: origin("ttgir", "P", part) for name, part in parts.items()},
        a=described("+z", severity="same"),
        b=described("+x", "+y"),
        c=described("+x"),
    )
    assert made.representative == "a/x:c@sm_90"
    assert (made.severity, made.reasons) == ("rounding", ("rounding of 1 lines",))
    assert (made.edit, made.origin_stage, made.pass_name) == (("+x",), "ttgir", "P")
    assert made.charged == (Component.FRONTEND, Component.PTXAS)
    assert made.similarity == round((0 + 1 / 2 + 1) / 3, 4)
    assert len(made.id) == 16


def test_lines_of_one_operation_stand_together_what_is_gone_first_and_are_bounded():
    (made,) = groups_of(a=described("+b", "-b", "+a", "-c", "-a"))
    assert made.edit == ("-a", "+a", "-b", "+b", "-c")
    lines = [f"+{n:04d}" for n in range(grouping.MAX_EDIT_LINES + 1)]
    (made,) = groups_of(a=described(*lines))
    assert made.edit == tuple(lines[:-1])


def test_groups_come_by_class_then_size():
    found = groups_of(
        a=described("+x", of="small"),
        b=described("+x", of="large"),
        c=described("+x", of="large"),
        d=described("+x", severity="same", of="light"),
        e=described("+x", severity="hazard", of="grave"),
        f=described("+x", severity="not shown", of="unclear"),
        g=described("+x", severity="broken", of="broken"),
    )
    assert [group.members[0][4] for group in found] == ["g", "e", "b", "a", "f", "d"]


def test_another_result_that_an_edited_source_asks_for_is_no_error_of_a_compiler():
    for charged, edited, same_compiler, severity in (
        (Component.PROGRAM, "source", False, ReportClass.INTENDED),
        (Component.FRONTEND, "edited", False, ReportClass.ROUNDING),
        (Component.FRONTEND, "edited", True, ReportClass.INTENDED),
        (Component.FRONTEND, "source", False, ReportClass.ROUNDING),
        (Component.TTGIR_PASSES, "edited", False, ReportClass.ROUNDING),
        (Component.TTGIR_PASSES, "edited", True, ReportClass.INTENDED),
        (Component.TTGIR_PASSES, "source", True, ReportClass.ROUNDING),
    ):
        base, head = (runs.launch("a/x:a@sm_90", source_digest=of, digest=of) for of in ("source", edited))
        rounding = Rounding(
            kind=RoundingKind.CONTRACTION, base="fma", head="add", witness=Witness(base=(), head=())
        )
        found = Effects(kind=Meaning.ROUNDING, stage="ptx", bits=Bits.MAY_DIFFER, roundings=(rounding,))
        made, launches = case(origin=origin("ttir", None, charged)), Sides(base=base, head=head)
        told = describe(made, None, launches, found, same_compiler=same_compiler)
        assert told.summary.severity == severity, (charged, edited)


def test_what_a_proof_leaves_open_includes_the_instructions_of_an_access():
    effects = Effects(kind=Meaning.SAME, stage="ptx", bits=Bits.SAME)
    changed = runs.case(verdict=Verdict.CHANGED)
    assert report_classes.class_of(changed, effects, is_asked_for=False) == (
        ReportClass.SAME,
        (
            "proved: the same accesses and values, by other instructions, in other registers or in another order",
        ),
    )
