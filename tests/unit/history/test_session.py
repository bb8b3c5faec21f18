"""The binaries of all versions as one run, and its timings as lines."""

import itertools
import math
from dataclasses import replace

import pytest

from irdiff.history import add, database, lines, session
from irdiff.history.database import HistoryError
from irdiff.model import Artifact, Sides, Verdict
from irdiff.run import run_folder
from irdiff.store import Store, sha256
from irdiff.timing import decision
from irdiff.timing.results import OutputStatus, Sample, Unclear
from irdiff.timing.schedule import GpuWork
from tests.unit import runs
from tests.unit.history import histories

LABELS = ["3.6.0", "3.7.0", "3.8.0", "3.9.0"]
CASE = "matmul/tma:fp16@sm_90"


def coded(base, head, verdict=Verdict.CHANGED):
    """A case whose binaries are the words given."""

    def side(word):
        return {"cubin": Artifact(stage="cubin", digest=sha256(word.encode()), size_bytes=len(word))}

    name = {} if verdict is Verdict.UNCHANGED else {"name": "k"}
    artifacts = Sides(base=side(base), head=side(head))
    return runs.case(CASE, verdict, artifacts=artifacts, metadata=Sides(base=name, head=name))


@pytest.fixture
def file(tmp_path):
    """3.7.0 has other code than 3.6.0, 3.8.0 the same as 3.7.0, 3.9.0 again another."""
    store = Store(tmp_path / "store")
    kept = [store.put(word.encode()) for word in ("a", "b", "c")]
    cases = [coded("a", "b"), coded("b", "b", Verdict.UNCHANGED), coded("b", "c")]
    for (base, head), case in zip(itertools.pairwise(LABELS), cases, strict=True):
        digests = [] if case.verdict is Verdict.UNCHANGED else kept
        added(tmp_path, histories.run(base, head, case), tmp_path / f"{base}..{head}", digests)
    return tmp_path / "h"


def added(tmp_path, run, folder, digests):
    run_folder.write(folder, run, Store(tmp_path / "store"), digests)
    with database.writing(tmp_path / "h") as history:
        add.add_run(history, run, folder)


def made(file, out):
    with database.reading(file) as history:
        return session.write(lines.read(history, "releases"), [runs.target()], out)


def test_each_machine_code_is_held_against_the_newest_once(file, tmp_path):
    found = made(file, tmp_path / "out")
    assert found.reference == "triton==3.9.0"
    assert found.same == {CASE: {"3.6.0": "3.6.0", "3.7.0": "3.7.0", "3.8.0": "3.7.0", "3.9.0": "3.9.0"}}
    run = run_folder.load(tmp_path / "out")
    assert [case.id for case in run.cases] == ["matmul/tma:fp16~3.6.0@sm_90", "matmul/tma:fp16~3.7.0@sm_90"]
    contents = [
        [run_folder.artifact(tmp_path / "out", side["cubin"].digest) for side in case.artifacts]
        for case in run.cases
    ]
    assert contents == [[b"c", b"a"], [b"c", b"b"]]
    assert session.load(tmp_path / "out") == found
    assert session.load(tmp_path / "3.6.0..3.7.0") is None


def test_a_run_whose_folder_is_gone_and_nothing_to_time_are_errors(file, tmp_path):
    with database.reading(file) as history, pytest.raises(HistoryError, match="no case has two versions"):
        session.write(lines.read(history, "releases"), [runs.target("gfx942")], tmp_path / "out")
    (tmp_path / "3.7.0..3.8.0" / "run.json").unlink()
    with pytest.raises(HistoryError, match="not where it was written"):
        made(file, tmp_path / "out")


def test_timings_of_a_session_become_lines(file, tmp_path):
    found = made(file, tmp_path / "out")
    assert add_timings_of(file, found, {"3.6.0": 1.10, "3.7.0": 1.05}) == 4
    assert add_timings_of(file, found, {"3.6.0": 1.10, "3.7.0": 1.05}) == 4
    with database.reading(file) as history:
        assert history.value("SELECT count(*) FROM sessions") == 1
        (line,) = lines.read(history, "releases").timings[CASE]
    assert [round(point.ratio, 3) for point in line.points if point] == [1.10, 1.05, 1.05, 1.0]
    assert [round(point.median_us) for point in line.points if point] == [110, 105, 105, 100]
    assert (line.gpu, line.reference) == ("NVIDIA H200", "triton==3.9.0")


def test_timings_of_a_run_become_lines_with_base_as_reference(file):
    timed = timings({CASE: 1.10})
    newest = histories.run("3.8.0", "3.9.0", coded("b", "c"))
    with database.writing(file) as history:
        assert add.add_run_timings(history, newest, timed) == 2
        assert add.add_run_timings(history, newest, timed) == 2
        assert add.add_run_timings(history, histories.run("3.9.0", "3.9.0", coded("c", "c")), timed) == 0
    with database.reading(file) as history:
        assert history.value("SELECT count(*) FROM sessions") == 1
        (line,) = lines.read(history, "releases").timings[CASE]
    assert [point and round(point.ratio, 3) for point in line.points] == [None, None, 1.0, 1.10]
    assert line.reference == "triton==3.8.0"


def test_a_fault_is_kept_without_a_time(file):
    """So is a wrong output that too few processes timed."""
    timed = timings({CASE: 1.10})
    newest = histories.run("3.8.0", "3.9.0", coded("b", "c"))
    fault = replace(timed.cases[0], measurement=None, outputs=runs.check(OutputStatus.FAULT, side="head"))
    quick = replace(timed.cases[0].measurement, unclear=Unclear.FEW_PROCESSES)
    wrong = replace(timed.cases[0], measurement=quick, outputs=runs.check(OutputStatus.DIFFERENT))
    for case in (fault, wrong):
        with database.writing(file) as history:
            later = replace(timed, cases=(case,), created=f"2026 {case.outputs.status}")
            assert add.add_run_timings(history, newest, later) == 2
        with database.reading(file) as history:
            (line,) = lines.read(history, "releases").timings[CASE]
        assert not any(line.points) and line.outputs[-2:] == ("equal", case.outputs.status)


def add_timings_of(file, found, ratios):
    timed = timings({session.entry(CASE, label): ratio for label, ratio in ratios.items()})
    with database.writing(file) as history:
        return add.add_timings(history, found, timed)


def timings(ratios):
    """By case, head ÷ base."""
    samples = {
        case: [
            runs.blank(Sample, gpu="GPU-1", case=case, process=p, arm=arm, launches=1,
                       elapsed_us=100.0 * (ratio if arm == "head" else 1.0) * math.exp(1e-4 * (p % 5)))
            for p in range(18)
            for arm in ("base", "control", "head")
        ]
        for case, ratio in ratios.items()
    }  # fmt: skip
    work = GpuWork(outputs=dict.fromkeys(samples, runs.check()), samples=samples)
    rows = decision.case_timings("GPU-1", work, runs.protocol())
    return runs.found(rows, gpus=(runs.gpu(name="NVIDIA H200"),))
