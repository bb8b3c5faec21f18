"""What a report counts over many cases: shared errors, nondeterminism, distinct edits, causes by project; and what is
new, gone or changed between two runs.
"""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from irdiff.cli.runs_commands import diff_runs_command
from irdiff.diffs.group_diff import GroupDiffs
from irdiff.errors import ExitCode
from irdiff.group.launch_causes import CONFIG
from irdiff.model import (
    Bits,
    CaseSummary,
    Cause,
    CauseKind,
    ChangedFile,
    Component,
    Effects,
    FailureKind,
    FileChange,
    Hazard,
    HazardKind,
    Meaning,
    Reach,
    Sides,
    StageStatus,
    Verdict,
    Witness,
)
from irdiff.report import distinct_edits, endings, error_clusters, headline, html, markdown, projects, view
from tests.unit import runs
from tests.unit.typed import typed


def test_one_error_of_many_cases_is_one_row_with_what_differs_left_open():
    messages = ["odd", *(f"needs {n} bytes of 'k{n}' in /tmp/{n}" for n in range(2)), None]
    cases = [runs.case(f"a/x:{n}@sm_90", Verdict.BROKEN, error=text) for n, text in enumerate(messages)]
    assert [(row.words, row.names) for row in error_clusters.errors(cases)] == [
        ("needs … bytes of … in …", "a/x:1@sm_90 and 1 more"),
        ("odd", "a/x:0@sm_90"),
        ("no message", "a/x:3@sm_90"),
    ]


def test_nondeterminism_of_head_comes_before_that_of_base_alone():
    sides = {"none": (), "base": ("base",), "both": ("base", "head"), "head": ("head",)}
    cases = [runs.case(f"a/x:{name}@sm_90", nondeterministic=found) for name, found in sides.items()]
    found = error_clusters.unstable(cases)
    assert [same[0].id for _, same in found] == ["a/x:both@sm_90", "a/x:head@sm_90", "a/x:base@sm_90"]


@pytest.mark.parametrize(
    ("stages", "words"),
    [
        (
            {"base": "cubin"},
            "ptxas of base gave different outputs for the same input, and ptxas of head did not",
        ),
        ({"base": "ptx", "head": "ptx"}, "LLVM of both sides gave"),
        ({"base": "launch", "head": "cubin"}, "the program of base and ptxas of head gave"),
    ],
)
def test_nondeterminism_names_the_program(stages, words):
    case = runs.case("a/x:1@sm_90", nondeterministic=tuple(stages), unsteady_stages=stages)
    assert words in headline.of(runs.run(case))


@pytest.mark.parametrize(
    ("stage", "charged", "by"),
    [
        ("sass", (Component.LLVM_LOWERING, Component.PTXAS), "ptxas"),
        ("llir", (Component.LLVM_CODEGEN, Component.PTXAS), "LLVM"),
        ("amdgcn", (Component.TTGIR_PASSES, Component.CODEGEN_LIBRARY), "the AMD codegen library"),
        ("llir", (Component.PTXAS, Component.NOT_SEPARABLE), "the stage llir"),
    ],
)
def test_a_headline_names_the_part_that_made_the_stage_of_the_origin(stage, charged, by):
    case = runs.case("a/x:1@sm_90", Verdict.CHANGED, origin=runs.origin(stage, None, *charged))
    assert f"changed on sm_90: its code first differs in {by}." in headline.of(runs.run(case))


def failing_programs(count):
    """Each ends with a long reason on both sides."""
    for number in range(count):
        message = f"EndedEarly: ValueError: {'the configuration is not supported here, ' * 4}{number}"
        failure = replace(runs.FAILURE, message=message, stage="capture")
        name = f"program/bench_{number}.py:*@sm_90"
        yield runs.case(name, Verdict.FAILING, failures=Sides(base=failure, head=failure))


def test_a_hazard_is_named_in_the_shortest_report_of_a_run_with_many_failing_programs():
    witness = Witness(base=(), head=())
    hazard = Hazard(kind=HazardKind.ACCESS, what="makes a global store without a predicate", witness=witness)
    effects = Effects(kind=Meaning.HAZARD, stage="ptx", bits=Bits.MAY_DIFFER, hazards=(hazard,))
    summary = runs.blank(CaseSummary, title="a title", severity="hazard", effects=effects)
    case = runs.case("a/x:1@sm_90", Verdict.CHANGED, summary=summary)
    run = runs.run(case, *failing_programs(10))
    said = headline.of(run)
    assert "8 more programs fail. What they launch after that was not compared." in said
    assert "1 hazard: a/x:1@sm_90 makes a global store without a predicate" in said
    assert "1 hazard: " in markdown.render(run, Path("nowhere"), limit=1_000)


def test_a_side_that_ran_out_of_time_does_not_say_that_it_no_longer_compiles():
    timeout = replace(runs.FAILURE, kind=FailureKind.TIMEOUT, message="no result after 300 s")
    slow = runs.case("a/x:1@sm_90", Verdict.BROKEN, failures=Sides(base=None, head=timeout))
    broken = runs.case("a/x:2@sm_90", Verdict.BROKEN, failures=Sides(base=None, head=runs.FAILURE))
    said = headline.of(runs.run(slow, broken))
    assert "1 of 2 cases that compiled at base no longer compiles on sm_90." in said
    assert "1 of 2 cases that compiled at base ran out of time or memory at head on sm_90." in said


@pytest.mark.parametrize(
    ("stages", "is_choice"),
    [
        ({"launch": StageStatus.CHANGED, "ttir": StageStatus.IDENTICAL}, True),
        ({"launch": StageStatus.CHANGED, "ttir": StageStatus.CHANGED}, False),
    ],
)
def test_other_configs_of_an_autotuner_are_no_other_result_of_the_same_code(stages, is_choice):
    summary = runs.blank(
        CaseSummary,
        title="one fewer autotuner config",
        severity="intended",
        causes=(replace(Cause.uncounted(CauseKind.NUMBER, CONFIG), count=-1),),
    )
    case = runs.case("a/x:1@sm_90", Verdict.CHANGED, stages=stages, summary=summary)
    said = headline.of(runs.run(case, groups=(runs.group("a" * 16, case.id, severity="intended"),)))
    assert ("1 case with the same code: its autotuner has other configs" in said) == is_choice
    assert ("what is computed or launched" in said) != is_choice


def test_a_class_that_only_an_earlier_irdiff_had_is_not_shown():
    case = runs.case("a/x:1@sm_90", Verdict.CHANGED)
    old = runs.group("a" * 16, case.id, severity="wrong-result risk", reasons=("fence: one was added",))
    run = runs.run(case, groups=(old,))
    (line,) = view.of(run, GroupDiffs(Path(), run)).groups
    assert (line.risk, len(line.reasons)) == ("not shown", 1)
    assert "another version of irdiff" in line.reasons[0]


def test_what_is_proved_is_said_where_nothing_else_is():
    def summary(severity):
        return CaseSummary(title="one barrier", severity=severity, reasons=(), causes=(), effects=None)

    proved = [runs.case(f"a/x:{n}@sm_90", Verdict.CHANGED, summary=summary("same")) for n in (1, 2)]
    assert "All of them are proved to compute the same." in headline.of(runs.run(*proved))
    assert "It is proved to compute the same." in headline.of(runs.run(proved[0]))
    open_case = runs.case("a/x:3@sm_90", Verdict.CHANGED, summary=summary("not shown"))
    assert "proved" not in headline.of(runs.run(*proved, open_case))


NORM, SILU, ROPE = "k/norm:a@sm_90", "k/silu:a@sm_90", "k/rope:a@sm_90"
"""Each compiles the file of its name."""


def of_kernels(*changed, head="3.9.0"):
    groups = (runs.group("a" * 16, NORM, SILU), runs.group("c" * 16, ROPE), runs.group("b" * 16, SILU))
    files = [
        ChangedFile(path=path, change=FileChange.CHANGED, compiled_by=1, read_by=1, not_run=())
        for path in changed
    ]
    return replace(
        runs.run(*(runs.case(name, Verdict.CHANGED) for name in (NORM, SILU, ROPE)), groups=groups),
        base=runs.revision("3.9.0", revision="main"),
        head=runs.revision(head, revision="HEAD"),
        reach=Reach(files=tuple(files), read_by=3),
    )


def test_an_edit_of_the_source_has_the_groups_that_compile_its_files():
    for changed, head, edits in (
        (["k/norm.py", "k/silu.py", "k/rope.py"], "3.9.0", ["ab", "c"]),
        (["k/norm.py", "k/rope.py"], "3.9.0", ["a", "c", "b"]),
        ([], "3.9.0", ["a", "c", "b"]),
        (["k/norm.py", "k/silu.py"], "3.8.0", ["a", "c", "b"]),  # two compilers edit no source
    ):
        found = distinct_edits.of(of_kernels(*changed, head=head))
        assert ["".join(group.id[0] for group in edit.groups) for edit in found] == edits


NOTE = "packs fla (fla-core==0.5.0), liger (liger-kernel==0.8.5) beside torch==2.13.0+cpu"
BROKEN = {**dict.fromkeys(("fla/a", "fla/b", "liger/a"), "no pointers"), "fla/c": "```\nother"}


@pytest.mark.parametrize("note", [NOTE, ""])
def test_causes_by_project(note, snapshot):
    cases = [
        runs.numbered(number, Verdict.BROKEN, workload=workload, error=error)
        for number, (workload, error) in enumerate(BROKEN.items())
    ]
    run = runs.run(*cases, runs.numbered(9, Verdict.CHANGED, workload="fla/a"))
    run = replace(run, head=replace(run.head, note=note))
    found = projects.broken(run)
    assert [(cause.title, *(part.issue for part in cause.projects)) for cause in found] == snapshot
    for text in (markdown.render(run, Path("nowhere")), html.render(run, Path("nowhere"))):
        assert text.count("An issue for") == sum(len(cause.projects) for cause in found)


def run_of(groups, edit="a", registers=32):
    """Cases by name with their groups; the edit and the registers are those of the case `x`."""
    cases = []
    for name in groups:
        letter, count = (edit, registers) if name == "x" else ("a", 32)
        facts = {"base": {"registers": 30}, "head": {"registers": count}}
        cases.append(runs.case(f"a/b:{name}@sm_90", Verdict.CHANGED, edit=letter * 64, **facts))
    made = [runs.group(group, f"a/b:{name}@sm_90") for name, group in groups.items()]
    return runs.run(*cases, groups=tuple(made))


OLD = run_of({"x": "g1", "y": "g2", "w": "g9"})
NEW = run_of({"x": "g1", "y": "g3", "w": "g9", "z": "g4"}, edit="b", registers=40)


OTHER = replace(NEW, base=replace(NEW.base, digest="e" * 64))


@pytest.mark.parametrize(("new", "ends"), [(OTHER, ExitCode.ANSWER_IS_NO), (OLD, ExitCode.DONE)])
def test_the_command(new, ends, tmp_path, snapshot):
    old, made = runs.saved(tmp_path / "old", OLD), tmp_path / "changes.json"
    words = (old, runs.saved(tmp_path / "new", new), "--json", made, "--exit-code")
    code, shown = typed(diff_runs_command, *words)
    assert code == ends
    assert shown.replace(str(tmp_path), "FOLDER") == snapshot
    assert json.loads(made.read_text())["gone"] == (["g2"] if new is OTHER else [])


def test_a_case_of_one_side_says_that_its_workload_may_name_its_releases():
    cases = (runs.case("a/x:1@sm_90", Verdict.ADDED), runs.case("a/x:2@sm_90", Verdict.REMOVED))
    compilers = {"base": runs.revision("3.8.0"), "head": runs.revision("3.9.0")}
    assert [ending.title for ending in endings.others(runs.run(*cases, **compilers), 9)] == [
        "added: launched at head only; a workload may name the first release that it runs with (SINCE) (1)",
        "removed: launched at base only; a workload may name the last release that it runs with (UNTIL) (1)",
    ]
