"""What a report says to type: a command that compares the same again, or none; and the names of groups."""

import shlex
from dataclasses import replace

import click
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irdiff.cli.ab_command import ab_command
from irdiff.cli.compare_command import compare_command
from irdiff.errors import UsageError
from irdiff.report import commands, group_names
from tests.unit import runs
from tests.unit.runs import group, large_run

OLD, NEW = "triton==3.8.0", "triton==3.9.0"


def test_it_names_the_kernels_of_each_side():
    for base, head, wanted in (
        ((OLD, ""), (NEW, ""), f"{OLD} {NEW}"),
        ((NEW, "HEAD~3 1a2b3c4"), (NEW, "5d6e7f8"), f"1a2b3c4 5d6e7f8 --triton {NEW}"),
        ((OLD, "HEAD~3 1a2b3c4"), (NEW, "HEAD 5d6e7f8"), "1a2b3c4 5d6e7f8"),
        ((OLD, "HEAD 1a2b3c4"), (NEW, "HEAD 1a2b3c4"), f"{OLD} 1a2b3c4 --triton {NEW}"),
        ((NEW, "me/kernels@main 1a2b3c4"), (NEW, "5d6e7f8"), f"me/kernels@main 5d6e7f8 --triton {NEW}"),
        # both compilers take the kernels of the working tree, then as now
        ((OLD, "working tree 1a2b3c4"), (NEW, "working tree 1a2b3c4"), f"{OLD} {NEW}"),
        ((NEW, "main 1a2b3c4"), (NEW, "working tree 5d6e7f8"), None),
    ):
        case = runs.case("matmul/tma:fp16@sm_90")
        sides = [replace(runs.revision(), spec=spec, revision=revision) for spec, revision in (base, head)]
        run = replace(runs.run(case), base=sides[0], head=sides[1])
        told = commands.again(run, case)
        assert told == (wanted and f"irdiff compare {wanted} --case {case.id} --target sm_90")


def again(*words):
    run = replace(runs.run(runs.case("matmul/tma:fp16@sm_90")), command=("compare", *words))
    run = replace(run, base=replace(run.base, spec=OLD), head=replace(run.head, spec=NEW))
    told = commands.again(run, run.cases[0])
    return told and told.removeprefix("irdiff compare ").removesuffix(
        f"--case {run.cases[0].id} --target sm_90"
    )


def test_what_chose_the_cases_is_typed_again():
    for words, wanted in (
        ("a b --corpus my/corpus --tier gate -j4 -q --json=-", f"{OLD} {NEW} --corpus my/corpus "),
        ("a b --pack liger --pack=fla --case mat* --shard 1/4", f"{OLD} {NEW} --pack liger --pack fla "),
        ("a b --with torch --configs 2 --target sm_90", f"{OLD} {NEW} --with torch --configs 2 "),
        ("a b --stages ttgir,ptx --no-recheck --out x", f"{OLD} {NEW} --stages ttgir,ptx "),
        ("--ir x.ir y.ir --option num_warps=8", f"x.ir y.ir --triton {NEW} --ir --option num_warps=8 "),
        ("a b --from triton==3.7.1", f"{OLD} {NEW} --from triton==3.7.1 "),
        ("a b --program 'bench/run.py --small'", f"{OLD} {NEW} --program 'bench/run.py --small' "),
        # an option's value may look like an option
        ("a b --program --corpus --out x", f"{OLD} {NEW} --program --corpus "),
        # `last` is another run by then, and what is not known may choose cases
        ("a b --from last:base", None),
        ("a b --of-another-version x", None),
    ):
        assert again(*shlex.split(words)) == wanted


@pytest.mark.parametrize("command", [compare_command, ab_command], ids=["compare", "ab"])
def test_every_option_is_kept_or_dropped(command):
    for option in command.params:
        if isinstance(option, click.Option):
            flags = (commands.KEPT_FLAGS, commands.DROPPED_FLAGS)
            known = flags if option.is_flag else (commands.KEPT, commands.DROPPED)
            names = {*option.opts, *option.secondary_opts}
            assert sum(names <= part for part in known) == 1, names


def of_ids(*ids):
    groups = tuple(group(name, f"a/b:{n}@sm_90") for n, name in enumerate(ids))
    return replace(large_run(4, 0), groups=groups)


@settings(derandomize=True, deadline=None, max_examples=100)
@given(st.lists(st.text("0123456789abcdef", min_size=16, max_size=16), unique=True, min_size=1, max_size=40))
def test_each_name_means_its_group_alone(ids):
    run = of_ids(*ids)
    short = group_names.short_ids(run)
    assert len(set(short.values())) == len(ids)
    for row in group_names.named(run):
        for name in (str(row.number), row.short, row.group.id, f"g:{row.group.id}"):
            assert group_names.find(run, name) is row.group


def test_a_short_id_is_longer_where_two_begin_alike_and_their_beginning_is_refused():
    run = of_ids("b140aaaa00000000", "c0ffee0000000000", "c0ffee1111111111")
    assert list(group_names.short_ids(run).values()) == ["g:b140", "g:c0ffee0", "g:c0ffee1"]
    with pytest.raises(UsageError) as raised:
        group_names.find(run, "g:c0ff")
    assert "g:c0ffee0, g:c0ffee1" in raised.value.hint


def test_what_a_forged_run_calls_a_group_is_no_command():
    (row,) = group_names.named(of_ids("; rm -rf ~\x1b #"))
    assert commands.explain("RUN", row.short) == "irdiff explain RUN 'g:; rm -rf ~\\x1b #'"
