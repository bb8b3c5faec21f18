"""What a report says to type: a command that compares the same again, or none; and the names of groups."""

import shlex
from dataclasses import replace

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from irdiff.cli.ab_command import ab_command
from irdiff.cli.compare_command import compare_command
from irdiff.errors import UsageError
from irdiff.report import commands, group_names
from tests.unit import runs
from tests.unit.golden import golden
from tests.unit.runs import group, large_run

GOLDEN = golden("commands")


def again(specs, revisions=("", ""), command=()):
    case = runs.case("matmul/tma:fp16@sm_90")
    made = zip((f"triton=={version}" for version in specs), revisions, strict=True)
    base, head = (replace(runs.revision(), spec=spec, revision=revision) for spec, revision in made)
    run = replace(runs.run(case), base=base, head=head, command=("compare", *command))
    told = commands.again(run, case)
    return told and told.removeprefix("irdiff compare ").removesuffix(f" --case {case.id} --target sm_90")


def test_it_names_the_kernels_of_each_side_and_what_chose_the_cases():
    for row in GOLDEN["sides"]:
        assert again(row["triton"], row["revisions"]) == row.get("again"), row
    for row in GOLDEN["words"]:
        assert again(("3.8.0", "3.9.0"), command=shlex.split(row["typed"])) == row.get("again"), row


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
