"""What people read of recorded runs of real compilers: snapshots, to be read aloud when they change.

`tests/data/report` holds the runs (`python -m tests.programs.recordings`): a release, one pass, a kernel library's
option, a broken backend, nothing changed, nothing reached. One more is a part of these: a base that does not compile.
`pytest --snapshot-update` writes the snapshots anew.
"""

import re
import tempfile
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import pytest
import zstandard

from irdiff.compare import radius
from irdiff.model import Verdict
from irdiff.report import markdown
from irdiff.report.shown import PLAIN
from irdiff.run import run_folder
from tests.programs import examples
from tests.unit.report.test_reports import printed

DATA = Path(__file__).parents[2] / "data" / "report"
NOWHERE = Path("run")


@cache
def recorded(name):
    content = zstandard.ZstdDecompressor().decompress((DATA / f"{name}.json.zst").read_bytes())
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "run.json").write_bytes(content)
        return run_folder.load(Path(folder))


def _mended():
    """A base that does not compile at all."""
    run = recorded("broken")
    kept = (Verdict.FIXED, Verdict.FAILING)
    cases = tuple(case for case in run.cases if case.verdict in kept)
    groups = tuple(row for row in run.groups if row.representative in {case.id for case in cases})
    return replace(run, cases=cases, groups=groups, notes=(), summary=radius.summarize(cases, run.targets))


RECORDED = ("release", "one-pass", "kernel-option", "broken", "unchanged", "unreached")
RUNS = {**{name: partial(recorded, name) for name in RECORDED}, "mended": _mended}


FORMS = {
    "comment.md": lambda run: markdown.render(run, NOWHERE, limit=markdown.COMMENT),
    "terminal-80.txt": partial(printed, is_terminal=True, color_system=None),
    "terminal-120.txt": partial(printed, is_terminal=True, width=120, color_system=None),
    "pipe.txt": partial(printed, color_system=None),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", RUNS)
def test_is_what_was_read(name, form, snapshot):
    assert FORMS[form](RUNS[name]()) == snapshot


def test_a_bump_is_what_was_read(snapshot):
    assert (
        markdown.render(recorded("release"), NOWHERE, limit=20_000, as_=replace(PLAIN, is_bump=True))
        == snapshot
    )


@pytest.mark.parametrize("name", RUNS)
def test_each_row_of_a_table_has_the_cells_of_its_head(name):
    for table in re.findall(r"(?:^\|.*\n)+", FORMS["comment.md"](RUNS[name]()), re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}) == 1, table


STORIES = {f"comment-{name}.md" for name in ("changes-nothing", "changes-an-option", "breaks-the-compiler")}


def test_each_is_made_by_something_and_is_not_stale():
    made = examples.recorded()
    for path, text in made.items():
        assert examples.settled(text) == examples.settled(examples.read(path)), "stale: `make examples`"
    assert {path.name for path in examples.EXAMPLES.iterdir()} == {path.name for path in made} | STORIES | {
        "README.md"
    }
