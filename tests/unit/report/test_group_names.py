from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irdiff.errors import UsageError
from irdiff.report import commands, group_names
from tests.unit.runs import group, large_run


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


@pytest.mark.parametrize("text", ["", "g:", "0", "3", "-1", "g:beef", "matmul", "²"])
def test_other_words_mean_no_group(text):
    assert group_names.find(of_ids("c0ffee0000000000", "b140ee1111111111"), text) is None


def test_what_a_forged_run_calls_a_group_is_no_command():
    (row,) = group_names.named(of_ids("; rm -rf ~\x1b #"))
    assert commands.explain("RUN", row.short) == "irdiff explain RUN 'g:; rm -rf ~\\x1b #'"
