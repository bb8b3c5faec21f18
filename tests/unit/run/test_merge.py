from dataclasses import replace

import pytest

from irdiff.errors import UsageError
from irdiff.model import ChangedFile, EditedLine, EditedLines, EditedSource, FileChange, Reach, Verdict
from irdiff.run import merge
from tests.unit import runs as build


def _shards(run, count):
    """As `irdiff compare --shard` would have made them."""
    shards = []
    for index in range(count):
        cases = [replace(case, group=None) for case in run.cases[index::count]]
        ids = {case.id for case in cases}
        groups = tuple(
            replace(group, members=members, representative=members[0])
            for group in run.groups
            if (members := tuple(member for member in group.members if member in ids))
        )
        shard = build.run(*cases, groups=groups, duration_s=run.duration_s / count)
        options = replace(run.options, shard=(index + 1, count))
        command = (*run.command, "--shard", f"{index + 1}/{count}")
        shards.append(replace(shard, targets=run.targets, command=command, options=options))
    return shards


@pytest.fixture
def run():
    names = [f"a/x:{n}@{target}" for n in range(6) for target in ("gfx942", "sm_90")]
    verdicts = [Verdict.UNCHANGED if n % 3 else Verdict.CHANGED for n in range(len(names))]
    cases = sorted(map(build.case, names, verdicts), key=lambda case: case.id)
    changed = [case.id for case in cases if case.verdict is Verdict.CHANGED]
    whole = build.run(*cases, groups=(build.group("g1", *changed[:3]), build.group("g2", *changed[3:])))
    return replace(whole, launches=dict(sorted(whole.launches.items())))


def test_shards_make_the_whole_again(run):
    for count in (1, 2, 5, 12):
        shards = _shards(run, count)
        joined = merge.merge(shards[::-1])
        assert joined == merge.merge(shards)
        alike = {"groups": (), "duration_s": 0}
        assert replace(joined, **alike) == replace(run, **alike)
        members = [{row.id: sorted(row.members) for row in made.groups} for made in (joined, run)]
        assert members[0] == members[1]


def test_only_runs_of_one_comparison_are_merged_each_once():
    first, second = build.run(build.case("a/x:1@sm_90")), build.run(build.case("a/x:2@sm_90"))
    target = replace(second.targets[0], facts={"sms": 1})
    pairs = [
        ("different normalizer version: 1 and 2", [first, replace(second, normalizer_version="2")]),
        ("different irdiff version", [first, replace(second, irdiff_version="9")]),
        ("different base", [first, replace(second, base=build.revision("3.7.0"))]),
        ("target 'sm_90' is not the same", [first, replace(second, targets=(target,))]),
        ("is in two of the runs", [first, first]),
        ("nothing to merge", []),
    ]
    for reason, runs in pairs:
        with pytest.raises(UsageError, match=reason):
            merge.merge(runs)
    joined = merge.merge([first, replace(second, environment={"A": "1"})])
    assert joined.environment == {"A": "1 | unset", "TRITON_DEFAULT_FP_FUSION": "1 | unset"}


def test_a_missing_shard_and_shards_of_different_lists_are_no_whole(run):
    shards = _shards(run, 4)
    with pytest.raises(UsageError, match="2, 4 of 4"):
        merge.merge([shards[0], shards[2]])
    assert merge.merge([shards[0], shards[2]], partial=True).notes == ("shards 2, 4 of 4 are missing",)
    with pytest.raises(UsageError, match=r"1/3.*1/4"):
        merge.merge([shards[0], _shards(run, 3)[1]])
    # the first was cut from a, c, and the second from a, b, c: nobody compared c
    first, second = (replace(shard, cut_from=cut) for shard, cut in zip(_shards(run, 2), "xy", strict=True))
    with pytest.raises(UsageError, match="cut from different lists of cases"):
        merge.merge([first, second])
    assert "cases are missing" in merge.merge([first, second], partial=True).notes[0]
    assert merge.merge([first, replace(second, cut_from="x")]).cut_from == ""


def test_a_pattern_that_another_shard_has_cases_of_is_not_said_to_match_none(run):
    first, second = _shards(run, 2)
    none, other = "--case a matches no case", "--case b matches no case"
    assert merge.merge([replace(first, notes=(none,)), replace(second, notes=(other, "note"))]).notes == (
        "note",
    )
    assert merge.merge([replace(first, notes=(none,)), replace(second, notes=(none,))]).notes == (none,)


def test_a_note_that_counts_the_cases_of_a_shard_names_the_shard(run):
    shards = [replace(shard, notes=("determinism check: 1 of 1", "note")) for shard in _shards(run, 2)]
    assert merge.merge(shards).notes == (
        "shard 1/2: determinism check: 1 of 1",
        "note",
        "shard 2/2: determinism check: 1 of 1",
    )


def test_a_part_that_was_chosen_from_one_run_is_not_the_whole():
    part, whole = build.run(build.case("a/x:1@gfx942")), build.run(build.case("a/x:1@sm_90"))
    chosen = {"tiers": ("gate",), "stages": ("ttir",), "configs": 1, "recheck": False, "attribute": False}
    part = replace(part, options=replace(part.options, cases=("a/x:1",), **chosen))
    for runs in ([part, whole], [whole, part]):
        options = merge.merge(runs).options
        assert {name: getattr(options, name) for name in chosen} == chosen
        assert set(options.cases) == {"a/x:1", "@sm_90"}


def test_what_reads_and_runs_a_changed_file_is_counted_over_all_runs():
    """Each shard captures its own workloads: a function ran where one of the readers ran it."""

    def part(name, read_by, *not_run):
        file = ChangedFile(
            path="k.py", change=FileChange.CHANGED, compiled_by=read_by, read_by=read_by, not_run=not_run
        )
        return replace(build.run(build.case(name)), reach=Reach(files=(file,), read_by=read_by))

    runs = [part("a/x:1@sm_90", 2, "f", "g"), part("a/x:2@sm_90", 1, "g"), part("a/x:3@sm_90", 0)]
    reach = merge.merge(runs).reach
    (file,) = reach.files
    assert (reach.read_by, file.read_by, file.compiled_by, file.not_run) == (3, 3, 3, ("g",))
    unread = merge.merge([part("a/x:1@sm_90", 0, "f"), part("a/x:2@sm_90", 0, "f")]).reach
    assert unread is not None and unread.files[0].not_run == ("f",), "a kernel that no launch reads"


def test_cases_that_run_an_edited_line_are_counted_over_all_runs():
    def part(name, **cases_of):
        lines = tuple(EditedLine(number=int(n[1:]), text=n, cases=count) for n, count in cases_of.items())
        source = EditedSource(path="lib/x.cpp", hunks=((3, 5),), lines=lines)
        counts = {"cases": 2, "unmeasured": 1, "executed_by": 1, "examples": (name,), "without_lines": ()}
        return replace(build.run(build.case(name)), edited_lines=EditedLines(sources=(source,), **counts))

    found = merge.merge([part("a/x:1@sm_90", n3=1, n5=0), part("a/x:2@sm_90", n3=2)]).edited_lines
    assert (found.cases, found.unmeasured, found.executed_by, found.examples) == (4, 2, 2, ("a/x:1@sm_90",))
    assert [(line.number, line.cases) for line in found.sources[0].lines] == [(3, 3), (5, 0)]
