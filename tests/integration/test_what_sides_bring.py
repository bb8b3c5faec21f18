"""What the trees and pins of two revisions have: whatever a launch reads is compared, and what no side could look
at is in the first sentence.
"""

import sqlite3
from contextlib import closing

import pytest
from click.testing import CliRunner

from irdiff.cli import cli
from tests.programs.checkouts import commit, new_repository, write
from tests.texts import text_of

KERNELS, NEW, WORKLOAD = (
    text_of(f"what_sides_bring/{name}.py") for name in ("kernels", "new_kernel", "workload")
)
PLAN = '[kernels]\nworkloads = "bench"\nimport = ["src"]\ntoolchain = "triton==3.9.0"\n'
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize 2\n"
WORDS = ("HEAD~1", "HEAD", "--target", "sm_90", "--no-attribute")
CHANGED = {".github.tuned.json", "docs.tuned.md", "NOTICE", "timed"}


@pytest.fixture
def repository(tmp_path):
    repo = new_repository(tmp_path / "kernels")
    for number, new in ((2, ""), (3, f"# a comment\n{NEW}")):
        data = dict.fromkeys((".github/tuned.json", "docs/tuned.md", "NOTICE"), f"{number}\n")
        lfs = {"src/tuned.bin": POINTER.format(str(number) * 64)}
        pins = {
            "requirements.txt": f"torch==2.{number}.0\n",
            ".gitignore": "generated.py\n",
            "irdiff.toml": PLAN,
        }
        write(repo, {"bench/f/all.py": WORKLOAD, "src/kernels.py": KERNELS + new, **data, **lfs, **pins})
        commit(repo, f"Side {number}")
    write(repo, {"src/generated.py": "FACTOR = 7\n"})
    return repo


def verdicts(done):
    return {case["id"].removeprefix("f/all:").partition("@")[0]: case for case in done.run["cases"]}


def test_whatever_a_launch_reads_is_compared_and_what_was_not_looked_at_is_said(irdiff, repository, tmp_path):
    run = tmp_path / "run"
    for words in ((), ("--no-cache",)):
        done = irdiff("compare", *WORDS, "--out", str(run), *words, cwd=repository)
        cases = verdicts(done)
        assert {name: case["verdict"] for name, case in cases.items()} == {
            **dict.fromkeys(CHANGED, "changed"),
            "src.tuned.bin": "unchanged",
            "scaled": "unchanged",
            "failing": "failing",
            "spilling": "added",
        }, done.stderr
        assert {name for name, case in cases.items() if case["nondeterministic"]} == {"timed"}
    for what in (
        "src/tuned.bin",
        "src/generated.py, which git ignores",
        "pin of torch in requirements.txt",
    ):
        assert what in done.stdout.splitlines()[0], done.stdout
    said = CliRunner().invoke(cli, ["explain", str(run), "f/all:spilling"]).output
    gate = CliRunner().invoke(cli, ["gate", str(run)]).output
    assert "spill store" in said
    assert "new: spill_store_bytes" in gate


def compiled(cache):
    """How many compilations the store holds."""
    (path,) = (cache / "results").glob("records-*.sqlite3")
    with closing(sqlite3.connect(path)) as records:
        return records.execute("SELECT count(*) FROM records WHERE kind = 'compiled'").fetchone()


def test_an_edit_that_no_launch_reads_compiles_nothing(irdiff, cache, repository):
    """Everything was compiled by an earlier run, on whatever side."""
    words = ("--case", "f/all:scaled", "--case", "f/all:NOTICE")
    irdiff("compare", *WORDS, *words, cwd=repository)
    before = compiled(cache)
    write(repository, {"README.md": "# Kernels\n"})
    commit(repository, "Documents")
    done = irdiff("compare", *WORDS, *words, cwd=repository)
    assert done.verdicts() == {"unchanged": 2}
    assert {case["findings"][0] for case in done.run["cases"]} == {"not-compiled:same-input"}
    assert compiled(cache) == before
