"""`timing.json`: written, read, merged, and refused where it is not what it says."""

import dataclasses
import json
import tracemalloc
from pathlib import Path

import pytest
import zstandard

from irdiff.errors import RunFolderError
from irdiff.timing import results, timing_file
from irdiff.timing import samples as samples_module
from irdiff.timing.results import CaseTiming, NotTimed, OutputStatus, ProcessTimes, Speed
from irdiff.timing.samples import SAMPLES_FILE, Sample, read_samples, write_samples
from tests.unit import runs as timings
from tests.unit.runs import check, gpu

TIMES = (ProcessTimes(process=0, base_us=1.0, control_us=1.1, head_us=1.2, base_mean_us=1.3, control_mean_us=1.4, head_mean_us=1.5),)  # fmt: skip


def found(uuid="GPU-1", cases=("a",), not_timed=(), note="", status=OutputStatus.EQUAL):
    rows = [
        CaseTiming(case=c, gpu=uuid, outputs=check(status), measurement=None, processes=TIMES, note=note)
        for c in cases
    ]
    untimed = tuple(NotTimed(case=c, reason="no such GPU here: sm_100") for c in not_timed)
    return timings.found(rows, host={uuid: "linux"}, gpus=(gpu(uuid),), not_timed=untimed)


def test_round_trip(tmp_path):
    timing_file.write(tmp_path, found())
    assert timing_file.load(tmp_path) == found()


def test_a_folder_without_timings(tmp_path):
    assert timing_file.load(tmp_path) is None


def test_hosts_add_to_each_other(tmp_path):
    timing_file.write(tmp_path, found("GPU-1", ("a",), ("b",)))
    timing_file.write(tmp_path, found("GPU-2", ("b",), ("a",)))
    merged = timing_file.load(tmp_path)
    assert [(row.case, row.gpu) for row in merged.cases] == [("a", "GPU-1"), ("b", "GPU-2")]
    assert [row.uuid for row in merged.gpus] == ["GPU-1", "GPU-2"]
    assert merged.not_timed == ()
    assert merged.duration_s == 4.0


def test_of_the_same_case_and_gpu_the_last_counts():
    merged = results.merge([found(note="old"), found(note="new")])
    assert [row.note for row in merged.cases] == ["new"]


@pytest.mark.parametrize("fault", [OutputStatus.FAULT, OutputStatus.HANG])
def test_a_fault_is_not_undone_by_a_time_at_which_it_was_not_seen(fault):
    fine, faulted = found(note="fine"), found(note="faulted", status=fault)
    for parts in ([faulted, fine], [fine, faulted], [fine, faulted, fine]):
        assert [row.note for row in results.merge(parts).cases] == ["faulted"]


def test_a_gpu_is_as_fit_as_when_its_cases_were_measured():
    busy = dataclasses.replace(
        gpu("GPU-1"), trustworthy=False, other_processes=("pid 7",), stopped="it was lost"
    )
    first = dataclasses.replace(found(cases=("a", "b")), gpus=(busy,))
    (record,) = results.merge([first, found(cases=("a",))]).gpus
    assert (record.trustworthy, record.other_processes, record.stopped) == (False, ("pid 7",), "it was lost")
    (record,) = results.merge([first, found(cases=("a", "b"))]).gpus
    assert record.trustworthy


def test_the_timings_of_the_samples_are_read():
    path = Path(__file__).parents[3] / "reports" / "samples" / "timing-3.8.0-3.9.0.json"
    read = timing_file.parse(path.read_bytes(), str(path))
    assert len(read.cases) == 232
    assert {row.measurement.speed for row in read.cases} == {Speed.SLOWER, Speed.FASTER, Speed.UNCLEAR}


# of what cannot be read


def test_another_schema_is_refused(tmp_path):
    row = json.loads(timing_file.dump(found())) | {"schema": "irdiff-timing/1"}
    (tmp_path / results.TIMING_FILE).write_text(json.dumps(row))
    with pytest.raises(RunFolderError, match="irdiff-timing/1"):
        timing_file.load(tmp_path)


@pytest.mark.parametrize("content", ["{", "[]", '{"schema": 3}', "NaN"])
def test_what_is_not_a_timing_file_is_refused(tmp_path, content):
    (tmp_path / results.TIMING_FILE).write_text(content)
    with pytest.raises(RunFolderError):
        timing_file.load(tmp_path)


def test_a_link_is_not_followed(tmp_path):
    (tmp_path / "elsewhere").write_bytes(timing_file.dump(found()))
    (tmp_path / results.TIMING_FILE).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RunFolderError):
        timing_file.load(tmp_path)


def sample(case, gpu="GPU-1", elapsed=1.0):
    return Sample(
        gpu=gpu, case=case, process=0, round=0, position=0, arm="base", launches=1, elapsed_us=elapsed
    )


def keys(rows):
    return {(row.case, row.gpu, row.elapsed_us) for row in rows}


def test_samples_of_a_case_measured_again_are_replaced(tmp_path):
    write_samples(tmp_path, [sample("a"), sample("b")], {("a", "GPU-1"), ("b", "GPU-1")})
    again = [sample("a", elapsed=2.0), sample("a", "GPU-2")]
    write_samples(tmp_path, again, {("a", "GPU-1"), ("a", "GPU-2")})
    rows = read_samples(tmp_path / SAMPLES_FILE)
    assert keys(rows) == {("b", "GPU-1", 1.0), ("a", "GPU-1", 2.0), ("a", "GPU-2", 1.0)}


def test_a_case_that_has_no_samples_now_does_not_keep_its_former_ones(tmp_path):
    write_samples(tmp_path, [sample("a"), sample("b")], {("a", "GPU-1"), ("b", "GPU-1")})
    write_samples(tmp_path, [], {("a", "GPU-1")})
    assert keys(read_samples(tmp_path / SAMPLES_FILE)) == {("b", "GPU-1", 1.0)}


def test_samples_from_json(tmp_path):
    path = tmp_path / "samples.json"
    path.write_text(json.dumps([dataclasses.asdict(sample("a"))]))
    assert read_samples(path) == [sample("a")]


def test_what_holds_no_samples_is_refused(tmp_path):
    path = tmp_path / "samples.json"
    path.write_text('[{"case": "a"}]')
    with pytest.raises(RunFolderError, match="does not hold samples"):
        read_samples(path)


def test_folders_are_joined(tmp_path):
    here, there = tmp_path / "h200", tmp_path / "b200"
    for folder, uuid, name in ((here, "GPU-1", "a"), (there, "GPU-2", "b")):
        folder.mkdir()
        timing_file.write(folder, found(uuid, (name,)))
        write_samples(folder, [sample(name, uuid)], {(name, uuid)})
    merged = timing_file.join(here, [there])
    assert [row.case for row in merged.cases] == ["a", "b"]
    assert timing_file.load(here) == merged
    assert {row.gpu for row in read_samples(here / SAMPLES_FILE)} == {"GPU-1", "GPU-2"}


def test_one_samples_file_is_joined_as_it_is(tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        folder.mkdir()
    timing_file.write(there, found("GPU-2", ("b",)))
    write_samples(there, [sample("b", "GPU-2")], {("b", "GPU-2")})
    timing_file.join(here, [there])
    assert (here / SAMPLES_FILE).read_bytes() == (there / SAMPLES_FILE).read_bytes()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"PAR1",
        zstandard.compress(b'{"case": "a"}\n'),
        zstandard.compress(b'{"gpu": 1}\n'),
        zstandard.compress(b"[" * 100_000),
        zstandard.compress(b"\xff\n"),
        zstandard.compress(bytes(1000))[:-1],
    ],
)
def test_a_damaged_samples_file_is_refused(tmp_path, content):
    (tmp_path / SAMPLES_FILE).write_bytes(content)
    with pytest.raises(RunFolderError, match="does not hold samples"):
        read_samples(tmp_path / SAMPLES_FILE)


def test_a_cut_off_samples_file_is_refused(tmp_path):
    write_samples(tmp_path, [sample(f"case {n}", elapsed=n / 7) for n in range(50_000)], set())
    content = (tmp_path / SAMPLES_FILE).read_bytes()
    for length in (len(content) // 2, len(content) - 1):
        (tmp_path / SAMPLES_FILE).write_bytes(content[:length])
        with pytest.raises(RunFolderError, match="it is cut off"):
            read_samples(tmp_path / SAMPLES_FILE)


def test_a_samples_file_that_unpacks_to_more_than_memory_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(samples_module, "_MAX_BYTES", 1 << 20)
    (tmp_path / SAMPLES_FILE).write_bytes(zstandard.compress(bytes(1 << 28)))
    tracemalloc.start()
    try:
        with pytest.raises(RunFolderError, match="unpacks to more than"):
            read_samples(tmp_path / SAMPLES_FILE)
        assert tracemalloc.get_traced_memory()[1] < 1 << 27
    finally:
        tracemalloc.stop()


def test_folders_without_timings(tmp_path):
    assert timing_file.join(tmp_path, [tmp_path / "other"]) is None
