"""Names of files that are no UTF-8, in every place of a run."""

from dataclasses import replace

from irdiff.model import ChangedFile, FileChange, Reach, Sides, Verdict
from irdiff.run import run_folder
from irdiff.run.readable import readable
from tests.unit import runs

NAME = b"src/x\xff.py".decode("utf-8", "surrogateescape")
TEXT = r"src/x\xff.py"


def of_unreadable_names():
    launched = runs.launch("a/x:1@sm_90", sources=(NAME,))
    reads = ChangedFile(path=NAME, change=FileChange.CHANGED, compiled_by=1, read_by=1, not_run=())
    case = runs.case("a/x:1@sm_90", Verdict.CHANGED, launches=Sides(base=launched.key, head=launched.key))
    return replace(
        runs.run(case),
        launches={launched.key: launched},
        reach=Reach(files=(reads,), read_by=1),
        notes=(f"{NAME}:3 asks the driver", "\ud834 is no byte"),
    )


def test_a_run_is_read_again_as_it_was_written(tmp_path):
    run = readable(of_unreadable_names())
    again = run_folder.load(runs.saved(tmp_path / "run", run))
    assert again == run
    assert [file.path for file in again.reach.files] == [TEXT]
    assert [launch.sources for launch in again.launches.values()] == [(TEXT,)]
    assert again.notes == (f"{TEXT}:3 asks the driver", r"\ud834 is no byte")


def test_a_run_without_such_names_stays_as_it_is():
    run = runs.run(runs.case(), notes=("größer",))
    assert readable(run) is run
