"""What `irdiff time` times, and what it adds to a run folder: written, read, merged, refused where it is not what it says."""

import json
import tracemalloc

import pytest
import zstandard

from irdiff import timing
from irdiff.cli.time_command import exit_code
from irdiff.errors import RunFolderError
from irdiff.model import Artifact, Sides, Verdict
from irdiff.timing import host, results, schedule, timing_file
from irdiff.timing.isolate import GpuProcessError
from irdiff.timing.results import CaseTiming, NotTimed, OutputStatus, ProcessTimes, Sample
from irdiff.timing.schedule import GpuWork, TimingOptions
from irdiff.timing.timing_file import SAMPLES_FILE, read_samples, write_samples
from tests.unit import runs as timings
from tests.unit.golden import golden
from tests.unit.runs import check, gpu, protocol

TIMES = (timings.blank(ProcessTimes, base_us=1.0, control_us=1.1, head_us=1.2),)


def found(uuid="GPU-1", cases=("a",), not_timed=(), note="", status=OutputStatus.EQUAL, **of_gpu):
    rows = [
        CaseTiming(case=c, gpu=uuid, outputs=check(status), measurement=None, processes=TIMES, note=note)
        for c in cases
    ]
    untimed = tuple(NotTimed(case=c, reason="no such GPU here: sm_100") for c in not_timed)
    return timings.found(rows, host={uuid: "linux"}, gpus=(gpu(uuid, **of_gpu),), not_timed=untimed)


@pytest.mark.parametrize("fault", [OutputStatus.FAULT, OutputStatus.HANG])
def test_the_last_counts_but_a_fault_is_not_undone(fault):
    fine, faulted = found(note="fine"), found(note="faulted", status=fault)
    for before, after, kept in [(faulted, fine, faulted), (fine, faulted, faulted), (found(), fine, fine)]:
        assert results.merge(before, after).cases == kept.cases


def test_a_wrong_output_is_not_undone_by_a_run_that_does_not_show_it():
    """A race shows in some runs alone."""
    for bad in (OutputStatus.DIFFERENT, OutputStatus.OUT_OF_BOUNDS):
        for later in (OutputStatus.EQUAL, OutputStatus.CLOSE):
            (case,) = results.merge(found(status=bad), found(status=later)).cases
            assert case.outputs.status is bad
    (case,) = results.merge(found(status=OutputStatus.DIFFERENT), found(note="later")).cases
    assert case.note == "later", "its outputs stay, and what was measured later counts"
    (case,) = results.merge(found(status=OutputStatus.DIFFERENT), found(status=OutputStatus.FAULT)).cases
    assert case.outputs.status is OutputStatus.FAULT


def test_a_gpu_is_as_fit_as_when_its_cases_were_measured():
    busy = {"trustworthy": False, "other_processes": ("pid 7",), "stopped": "it was lost"}
    first = found(cases=("a", "b"), **busy)
    (record,) = results.merge(first, found(cases=("a",))).gpus
    assert {name: getattr(record, name) for name in busy} == busy
    (record,) = results.merge(first, found(cases=("a", "b"))).gpus
    assert record.trustworthy
    faulted = found(cases=("a",), status=OutputStatus.FAULT)  # of the second time nothing is kept
    (record,) = results.merge(faulted, found(cases=("a",), **busy)).gpus
    assert record.trustworthy


OLD = json.dumps(json.loads(timing_file.dump(found())) | {"schema": "irdiff-timing/1"})


def test_what_is_not_a_timing_file_of_this_schema_is_refused_and_no_link_followed(tmp_path):
    path = tmp_path / results.TIMING_FILE
    for content in ("{", "[]", '{"schema": 3}', "NaN", OLD):
        path.write_text(content)
        with pytest.raises(RunFolderError, match=r"valid timing file|has schema"):
            timing_file.load(tmp_path)
    path.unlink()
    (tmp_path / "elsewhere").write_bytes(timing_file.dump(found()))
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RunFolderError):
        timing_file.load(tmp_path)


def sample(case, gpu="GPU-1", elapsed=1.0):
    return timings.blank(Sample, gpu=gpu, case=case, arm="base", launches=1, elapsed_us=elapsed)


def keys(folder):
    return {(row.case, row.gpu, row.elapsed_us) for row in read_samples(folder / SAMPLES_FILE)}


def test_samples_of_a_case_measured_again_are_replaced(tmp_path):
    write_samples(tmp_path, [sample("a"), sample("b")], {("a", "GPU-1"), ("b", "GPU-1")})
    again = [sample("a", elapsed=2.0), sample("a", "GPU-2")]
    write_samples(tmp_path, again, {("a", "GPU-1"), ("a", "GPU-2")})
    assert keys(tmp_path) == {("b", "GPU-1", 1.0), ("a", "GPU-1", 2.0), ("a", "GPU-2", 1.0)}
    write_samples(tmp_path, [], {("a", "GPU-1")})  # it faulted: it does not keep its former ones
    assert keys(tmp_path) == {("b", "GPU-1", 1.0), ("a", "GPU-2", 1.0)}


def test_a_damaged_or_cut_off_samples_file_is_refused(tmp_path):
    path = tmp_path / SAMPLES_FILE
    lines = (b'{"case": "a"}\n', b'{"gpu": 1}\n', b"[" * 100_000, b"\xff\n")
    for content in (b"", b"PAR1", *map(zstandard.compress, lines), zstandard.compress(bytes(1000))[:-1]):
        path.write_bytes(content)
        with pytest.raises(RunFolderError, match="does not hold samples"):
            read_samples(path)
    path.unlink()
    write_samples(tmp_path, [sample(f"case {n}", elapsed=n / 7) for n in range(50_000)], set())
    content = path.read_bytes()
    for length in (len(content) // 2, len(content) - 1):
        path.write_bytes(content[:length])
        with pytest.raises(RunFolderError, match="it is cut off"):
            read_samples(path)


def test_a_samples_file_that_unpacks_to_more_than_memory_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(timing_file, "_MAX_SAMPLES_BYTES", 1 << 20)
    (tmp_path / SAMPLES_FILE).write_bytes(zstandard.compress(bytes(1 << 28)))
    tracemalloc.start()
    try:
        with pytest.raises(RunFolderError, match="unpacks to more than"):
            read_samples(tmp_path / SAMPLES_FILE)
        assert tracemalloc.get_traced_memory()[1] < 1 << 27
    finally:
        tracemalloc.stop()


def case(name, target):
    cubin = {"cubin": Artifact(stage="cubin", digest="0" * 64, size_bytes=1)}
    return timings.case(f"{name}@{target}", Verdict.CHANGED, artifacts=Sides(base=cubin, head=cubin))


def test_a_busy_gpu_is_not_a_pass():
    card = {"uuid": "GPU-1", "name": "card", "target": "sm_90", "driver": "CUDA 13.0"}
    work = GpuWork(card=card | dict.fromkeys(("multiprocessors", "memory_bytes", "l2_bytes"), 1), wall_s=10.0)
    assert not work.record(host.summarize([], ["pid 3"])).trustworthy
    assert work.record(host.summarize([], [])).trustworthy


def test_exit_codes():
    for row in golden("timings")["ends"]:
        cases = found(status=OutputStatus(row.get("status", OutputStatus.EQUAL))).cases
        untimed = (NotTimed(case="b", reason=row["not_timed"]),) if "not_timed" in row else ()
        of = timings.found(cases, gpus=(gpu(stopped=row.get("stopped", "")),), not_timed=untimed)
        assert exit_code(of) == row["code"], row


class Listing:
    """A first GPU process that names two GPUs."""

    def ask_first(self, request, timeout_s, failed):
        return {"kind": "listed", "targets": ["sm_90", "sm_90"], "versions": {"torch": "2"}}

    def close(self):
        pass


def test_a_gpu_that_cannot_be_opened_does_not_take_the_others_with_it(monkeypatch):
    def on_two_gpus(errors, target="sm_90"):
        def run_gpu(start, index, names, options):
            if index in errors:
                raise errors[index]
            return GpuWork(card={"uuid": f"GPU-{index}"}, outputs=dict.fromkeys(names))

        monkeypatch.setattr(schedule, "run_gpu", run_gpu)
        options = TimingOptions(patterns=(), every=False, protocol=protocol(), environment={}, say=print)
        return timing.on_all_gpus(Listing, [case("a", target), case("b", target)], options)

    error = GpuProcessError("GPU 1 cannot be opened")
    works, not_timed, _ = on_two_gpus({1: error})
    assert [list(work.outputs) for work in works] == [["a@sm_90"]]
    assert not_timed == [NotTimed(case="b@sm_90", reason="GPU 1 cannot be opened")]
    with pytest.raises(GpuProcessError):
        on_two_gpus({0: error, 1: error})
    with pytest.raises(KeyError):  # a mistake
        on_two_gpus({1: KeyError("x")})
    with pytest.raises(timing.NoGpuError, match=r"sm_90.*gfx942"):
        on_two_gpus({}, target="gfx942")
