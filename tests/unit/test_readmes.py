"""The links of READMEs lead somewhere, and their commands exist; every wide test belongs to some change."""

import re
from pathlib import Path

import click
import pytest

from irdiff.cli import cli
from tests.programs import wide

ROOT = Path(__file__).parents[2]
FOLDERS = ("irdiff", "corpus", "targets", "reports", "tests", ".github")
READMES = [
    path
    for path in (
        ROOT / "README.md",
        ROOT / "irdiff/limits.md",
        *(path for name in FOLDERS for path in sorted((ROOT / name).rglob("README.md"))),
    )
    if not {"_shipped", "data"} & set(path.relative_to(ROOT).parts)
]
_LINK = re.compile(r"\]\((?!https?://|#)([^)#\s]+)")
_CODE = re.compile(r"^```\w*\n(.*?)^```|`([^`\n]+)`", re.MULTILINE | re.DOTALL)
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


def name(path):
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", READMES, ids=name)
def test_links_lead_somewhere(path):
    text = path.read_text(encoding="utf-8")
    assert [link for link in _LINK.findall(text) if not (path.parent / link).exists()] == []


@pytest.mark.parametrize("path", READMES, ids=name)
def test_commands_and_their_options_exist(path):
    for line in commands(path.read_text(encoding="utf-8")):
        command, rest = command_of(line.split("#", 1)[0].split(" -- ", 1)[0].split()[1:])
        if command is None:
            continue
        known = {
            option for parameter in command.params for option in parameter.opts + parameter.secondary_opts
        }
        assert set(_OPTION.findall(" ".join(rest))) <= known | {"--help"}, line


def commands(text):
    blocks = (match[1] or match[2] for match in _CODE.finditer(text))
    return [line for block in blocks for line in block.splitlines() if re.match(r"irdiff [a-z]", line)]


def command_of(words):
    """The command that words call, and what is left of them; None where they only name the group of several."""
    found = cli
    while words and isinstance(found, click.Group):
        inner = found.get_command(click.Context(found), words[0].rstrip(","))
        assert inner is not None, f"no command {words[0]!r}"
        found, words = inner, words[1:]
    return (None if isinstance(found, click.Group) else found), words


def test_irdiffs_readme_lists_every_folder():
    folder = ROOT / "irdiff"
    listed = set(_LINK.findall((folder / "README.md").read_text(encoding="utf-8")))
    assert {path.parent.name for path in folder.glob("[a-z]*/__init__.py")} <= listed


def test_every_wide_test_is_some_change_s():
    folder = ROOT / wide.FOLDER
    marked = {
        str(path.relative_to(folder)) for path in folder.rglob("*.py") if "mark.wide" in path.read_text()
    }
    assert marked == set(wide.WIDE)
    starts = {start for row in wide.WIDE.values() for start in row}
    assert [start for start in starts if not list(ROOT.glob(start.rstrip("/") + "*"))] == []
    assert wide.touched(["irdiff/cluster/client.py"]) == [wide.FOLDER + "test_cluster.py"]
    assert wide.touched(["README.md"]) == []
