"""What is said of edits, figures and launches: what `golden` holds of its rows, and titles of real runs."""

import re
from dataclasses import replace

import pytest

from irdiff.compare import edits
from irdiff.group import causes, figures, launch_causes, operation_names, short_titles, titles, values
from irdiff.ir.parsed_line import inline_assembly
from irdiff.model import CaseSummary, Cause, CauseKind, Sides, StageStatus, Verdict
from irdiff.texts import ir_of
from tests.programs.titles import DATA, read
from tests.unit import runs
from tests.unit.golden import golden, recorded
from tests.unit.group.edits_of import edit

CASE = "a/x:1@sm_90"
NONE = Sides(base=None, head=None)


def edit_of(row):
    if "lines" not in row and "base" not in row:
        return edit(row["ir"]) if "ir" in row else None
    if "base" in row:
        return edits.between(row["ir"], row["base"], row["head"])
    return edit(row["ir"], *row["lines"])


def one(row):
    of, (base, head) = edit_of(row), row.get("facts", ({}, {}))
    stage = row.get("stage") or (of.stage if of else "")
    statuses = {name: StageStatus(status) for name, status in row.get("stages", {}).items()}
    changes = {"stages": statuses} if statuses else {}
    changes |= {"origin": runs.origin(stage), "findings": runs.findings(*row.get("findings", ()))}
    subject = runs.case(CASE, Verdict.CHANGED, base=base, head=head, **changes)
    return titles.of_case(subject, titles.causes_of(subject, of, NONE))


def several(row):
    rows, registers = [], row.get("registers", [(0, 0)] * len(row["members"]))
    for written, (before, after) in zip(row["members"], registers, strict=True):
        facts = {"base": {"registers": before}, "head": {"registers": after}}
        subject = runs.case(CASE, Verdict.CHANGED, origin=runs.origin(), **facts)
        rows.append((subject, titles.causes_of(subject, edit("ttgir", *written), NONE)))
    return titles.of_group(rows)


def failing(row):
    broken, rows = row["verdict"] == "broken", []
    for message in row["messages"]:
        failure = replace(runs.FAILURE, stage=row["stage"], message=message)
        sides = Sides(base=None if broken else failure, head=failure if broken else None)
        rows.append(runs.case(CASE, Verdict(row["verdict"]), failures=sides))
    return titles.of_group([(row, titles.causes_of(row, None, NONE)) for row in rows])


def told(found):
    return ", ".join(
        f"{row.kind}: {row.subject}{f' {row.detail}' if row.detail else ''} ×{row.count}, {row.in_loops} in loops"
        + (f", before {row.ahead}" if row.ahead else "")
        for row in found
    )


def cases(row):
    return [
        runs.case(f"{n}/x:1@sm_90", Verdict(*verdict or ["changed"]), base=base, head=head)
        for n, (base, head, *verdict) in enumerate(row["cases"])
    ]


def name(row):
    line = ir_of(row["ir"]).parse(row["line"])
    return f"{operation_names.name_of(line)} ({operation_names.minor_name_of(line)})"


def launch(row):
    launches = Sides(base=runs.launch(CASE, **row["base"]), head=runs.launch(CASE, **row["head"]))
    base, head = row.get("metadata", ({}, {}))
    case = runs.case(CASE, Verdict.CHANGED, metadata=Sides(base=base, head=head))
    return told(launch_causes.of_case(case, launches))


KINDS = {
    "failing": failing,
    "case": one,
    "group": several,
    "causes": lambda row: told(causes.of_edit(edit_of(row) or edit("ttgir"))),
    "values": lambda row: told(values.of_edit(edit_of(row) or edit("ttgir"))),
    "layouts": lambda row: told(values.layouts(edit_of(row) or edit("ttgir"))),
    "figures": lambda row: ", ".join(figures.moved(cases(row), row.get("said", ""))),
    "kept": lambda row: ", ".join(figures.kept(cases(row), row["subjects"])),
    "name": name,
    "plural": lambda row: operation_names.plural(row["name"], row["count"]),
    "assembly": lambda row: " ".join(inline_assembly(row["line"])),
    "launch": launch,
}


def test_what_is_said_of_each():
    said = [(kind, row["why"], of(row)) for kind, of in KINDS.items() for row in golden("wording")[kind]]
    recorded("wording.txt", "".join(f"{kind}, {why}: {words}\n" for kind, why, words in said))
    for kind, why, words in said:
        assert len(words) <= titles.MAX_TITLE or kind not in ("failing", "case", "group"), why


def test_a_changed_option_comes_first_and_other_lines_of_the_launch_are_named(snapshot):
    """An option that is written out, configs that an autotuner gains, a grid."""
    four, eight = (runs.launch(CASE, options={"num_warps": count}) for count in "48")
    case, both = runs.case(CASE, Verdict.CHANGED, origin=runs.origin()), Sides(base=four, head=eight)
    found = [titles.causes_of(case, edit("ttgir", "+ ttng.fence"), both)]
    written = [
        "+   option num_stages: 2",
        *(f"+   autotuner's config: BLOCK {n}" for n in (1, 2, 3)),
        ["  grid: [4, 1, 1]", "  grid: [8, 1, 1]"],
        "-   option num_warps: 8",
    ]
    found += [
        titles.causes_of(case, edit("launch", *written), both),
        titles.causes_of(case, edit("launch", *written[:4]), Sides(base=four, head=four)),
    ]
    assert [titles.of_case(case, row) for row in found] == snapshot


def test_the_risk_of_one_case_stands_behind_the_edit_of_its_group_and_says_of_how_many(snapshot):
    case = runs.case(CASE, Verdict.CHANGED, origin=runs.origin())
    (fence,) = titles.causes_of(case, edit("ttgir", "+ ttng.fence_async_shared"), NONE)
    risk = replace(fence, kind=CauseKind.EFFECT, subject="`bar.sync` is gone", count=1)
    assert titles.of_group([(case, (fence,)), (case, (fence,)), (case, (risk, fence))]) == snapshot


def test_a_short_title_says_of_how_many_cases_it_holds_and_leaves_out_where():
    option = Cause.uncounted(CauseKind.LAUNCH, "`enable_fp_fusion`", "True → False")
    fence = replace(Cause.uncounted(CauseKind.NUMBER, "`ttng.fence`"), count=2, in_loops=1)
    members = [
        runs.case(
            f"a/x:{n}@sm_90", Verdict.CHANGED, summary=replace(runs.blank(CaseSummary), causes=causes_of)
        )
        for n, causes_of in enumerate([(option, fence), (option, fence), (fence,), (fence,)])
    ]
    group = runs.group("g1", *(member.id for member in members))
    found = short_titles.of(group, {member.id: member for member in members})
    assert found.clauses == ("2 more `ttng.fence`", "`enable_fp_fusion` True → False (in 2 of 4 cases)")


def test_a_short_title_does_not_end_within_a_number():
    title = short_titles.ShortTitle(clauses=("one more `a`", "1 or 2 more `b`"), risky=0)
    assert [title.within(room) for room in (40, 20)] == ["one more `a`, 1 or 2 more `b`", "one more `a`, …"]


NAMES = sorted(path.stem for path in DATA.glob("*.txt"))
assert NAMES
"""Two real comparisons, whose titles `python -m tests.programs.titles` wrote."""


@pytest.mark.parametrize("name", NAMES)
def test_titles_are_those_that_were_read_and_judged(name):
    assert [row.line for row in read(name)] == (DATA / f"{name}.txt").read_text().splitlines()


@pytest.mark.parametrize("name", NAMES)
def test_a_title_holds_for_each_of_its_cases(name):
    """Each case's own figures lie in the ranges of its group."""
    for row in read(name):
        shown = re.search(r"registers (-?\+?\d+) … ([-+]?\d+)(?!\d| on)", titles.of_group(row.members))
        for case, _ in row.members if shown else ():
            step = case.facts.head.get("registers", 0) - case.facts.base.get("registers", 0)
            assert int(shown[1]) <= step <= int(shown[2])


def test_which_machine_code_differs_is_said_of_all_cases_and_the_difference_of_the_assembly_of_some():
    changed, same = StageStatus.CHANGED, StageStatus.EQUIVALENT
    cases = [
        runs.case(CASE, Verdict.CHANGED, origin=runs.origin("sass"), stages={"ptx": ptx, "sass": changed})
        for ptx in (changed, changed, same)
    ]
    assert titles.of_group([(case, titles.causes_of(case, None, NONE)) for case in cases]) == (
        "`ptxas` makes other machine code, the PTX is the same (in 1 of 3 cases), "
        "the difference in PTX has no effect (in 2 of 3 cases)"
    )


def test_a_title_that_is_cut_names_both_operations_of_an_exchange():
    """Reported: `2 more stores, …`, where as many stores of inline assembly were gone."""
    case = runs.case(CASE, Verdict.CHANGED, origin=runs.origin())
    written = [
        *["+ tt.store"] * 3,
        *["- tt.other1"] * 2,
        "- tt.other2",
        *["- tt.asm_store"] * 3,
        "+ tt.other3",
    ]
    case_causes = titles.causes_of(case, edit("ttgir", *written), NONE)
    assert titles.of_case(case, case_causes) == (
        "3 fewer `tt.asm_store` and 3 more `tt.store`, 2 fewer `tt.other1`, one fewer `tt.other2` and one more "
        "`tt.other3`"
    )
    clauses = ("one more `a` before wgmma and one fewer `b`", "3 fewer `c`")
    assert short_titles.ShortTitle(clauses=clauses, risky=0).within(30) == ""
    assert short_titles.ShortTitle(clauses=clauses, risky=0).within(45) == f"{clauses[0]}, …"
