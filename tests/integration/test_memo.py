"""Each step's results are made again after an edit of its code, and no others."""

import shutil
import sqlite3

import pytest

from irdiff.store import code

CASE = ("--case", "normalization/softmax:fp16-4k@sm_90", "--target", "sm_90")
EDITS = {
    "capture/catalogs.py": {"catalog"},
    "compile/launch_compiler.py": {"compiled"},
    "compare/comparer.py": {"compared"},
    "attribute/attributor.py": {"attributed"},
    "attribute/replayer.py": {"replayed", "attributed", "determinism"},
    "group/titles.py": {"judged"},
    "determinism/determinism_check.py": {"determinism"},
    "work/counting.py": {"work"},
}


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A copy of irdiff's code, which stands for the code that runs."""
    copy = tmp_path / "irdiff"
    shutil.copytree(code.PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__", "_shipped"))
    monkeypatch.setattr(code, "PACKAGE", copy)
    yield copy
    forget()


def forget():
    code.digest_of.cache_clear()
    code._source.cache_clear()


def test_an_edit_of_a_step_makes_its_results_again_and_no_others(irdiff, cache, package):
    def compared():
        forget()
        done = irdiff("compare", "triton==3.8.0", "triton==3.9.0", *CASE)
        with sqlite3.connect(cache / "results" / "records-1.sqlite3") as records:
            return done.verdicts(), set(records.execute("SELECT kind, key FROM records"))

    verdicts, before = compared()
    assert {kind for kind, _ in before} == {
        "catalog",
        "compiled",
        "compared",
        "replayed",
        "attributed",
        "judged",
        "determinism",
        "work",
    }
    for path, kinds in EDITS.items():
        with (package / path).open("a") as file:
            file.write("# another line\n")
        again, after = compared()
        assert (path, {kind for kind, _ in after - before}) == (path, kinds)
        assert again == verdicts
        before = after
