"""The command line as a whole: what an interruption leaves."""

import json
import re
import sys
from dataclasses import replace

import click
import pytest
from click.testing import CliRunner

from irdiff import cli as command_line
from irdiff import config as configuration
from irdiff.cli import init_command
from irdiff.cli.run_argument import find_case
from irdiff.errors import BuildInterrupted, UsageError
from irdiff.model import Verdict
from irdiff.report import group_names
from tests.unit import runs
from tests.unit.runs import large_run


def test_history_without_its_extra_says_which(monkeypatch, capsys):
    for name in [name for name in sys.modules if name.startswith(("irdiff.history", "irdiff.cli.history"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "numpy", None)
    monkeypatch.setattr("sys.argv", ["irdiff", "history", "check"])
    with pytest.raises(SystemExit) as ended:
        command_line.main()
    assert ended.value.code == 2
    assert "next: pip install 'irdiff[history]'" in capsys.readouterr().err


def test_an_interruption_says_what_is_kept(monkeypatch, capsys):
    for raised, words in (
        (KeyboardInterrupt(), "interrupted; what was compiled is in the store"),
        (BuildInterrupted("what was built is kept: /x"), "interrupted; what was built is kept: /x"),
    ):

        @click.command()
        def interrupted(raised=raised):
            raise raised

        monkeypatch.setattr(command_line, "cli", interrupted)
        monkeypatch.setattr("sys.argv", ["irdiff"])
        with pytest.raises(SystemExit) as ended:
            command_line.main()
        assert ended.value.code == 130
        assert capsys.readouterr().err.strip() == words


COMMIT = "c" * 40
HERE = (
    *("https://github.com/o/irdiff", "https://github.com/o/irdiff.git", "git@github.com:o/irdiff.git"),
    *("ssh://git@github.com/o/irdiff.git", "https://user:token@github.example/o/irdiff/"),
)
BUILT = {"vcs_info": {"vcs": "git", "commit_id": COMMIT}}


@pytest.mark.parametrize(
    ("origin", "action"),
    [
        *(({"url": address, **BUILT}, f"o/irdiff@{COMMIT}") for address in HERE),
        *((origin, None) for origin in (None, {"url": "", **BUILT}, {"url": "/nowhere", **BUILT})),
    ],
)
def test_jobs_run_the_commit_that_the_package_is_built_from_or_that_is_named(
    tmp_path, monkeypatch, origin, action
):
    if origin:
        (tmp_path / "built_from.json").write_text(json.dumps(origin))
    monkeypatch.setattr(init_command.irdiff, "__file__", "/nowhere/irdiff/__init__.py")
    config = replace(configuration.load(), shipped=tmp_path)
    assert init_command.own_action(config) == action
    if action is None:
        with pytest.raises(UsageError, match="a commit of irdiff"):
            init_command.github_files(None, None, config, is_compiler=True, timing=False)


@pytest.fixture(scope="module")
def run():
    return large_run(60, 6)


def test_a_case_is_named_by_its_id_a_part_of_it_or_a_group(run):
    assert find_case(run, run.cases[3].id) is run.cases[3]
    for row in group_names.named(run):
        for text in (str(row.number), row.short, row.group.id):
            assert find_case(run, text).id == row.group.representative
    case = runs.numbered(0, Verdict.CHANGED)
    longer = runs.run(case, replace(case, id=case.id + "0"))
    assert find_case(longer, case.id).id == case.id, "a whole id wins over ids that contain it"


def test_a_text_that_means_no_case_or_several_is_answered_with_those_that_come_near(run):
    misspelt = run.cases[0].id.replace("sm_90", "sm90").replace("attention", "atention")
    reasons = {
        "matmul": r"'matmul' means \d+ cases:\n    matmul/",
        "nothing": "matches no case of the run",
        **dict.fromkeys(("7", "0", "g:ffff", "g:"), "no change group"),
        misspelt: f"did you mean .*{run.cases[0].id}",
    }
    for text, reason in reasons.items():
        with pytest.raises(UsageError) as raised:
            find_case(run, text)
        assert raised.match(reason)


def helped(*words):
    return CliRunner().invoke(command_line.cli, [*words, "--help"]).output


def test_every_command_and_every_option_of_compare_stands_in_the_help_once():
    """By what people do: a command or an option that no section names would be missing."""
    commands = helped()
    assert all(
        len(re.findall(rf"^  {name} ", commands, re.MULTILINE)) == 1 for name in command_line._COMMANDS
    )
    assert [title for title in command_line._GROUPS if f"\n{title}:\n" not in commands] == []
    options = [
        next(name for name in option.opts if name.startswith("--"))
        for option in command_line.cli.get_command(click.Context(command_line.cli), "compare").params
        if isinstance(option, click.Option)
    ]
    compare = helped("compare")
    assert [name for name in options if not re.search(rf"^  (-\w, )?{name}\b", compare, re.MULTILINE)] == []
    assert compare.index("Which kernels:") < compare.index("--corpus") < compare.index("Which cases:")
