"""`timing.json`: written, read, merged, and refused where it is not what it says."""

import dataclasses
import json

import pytest

from irdiff.errors import RunFolderError
from irdiff.timing import results
from irdiff.timing.results import (
    CaseTiming,
    GpuRecord,
    NotTimed,
    OutputCheck,
    OutputStatus,
    Protocol,
    Sample,
    TimingResults,
)


def check(status=OutputStatus.EQUAL):
    return OutputCheck(
        status=status, side=None, message="bitwise equal", arguments=(), max_ulp=0, relative_norm=0.0,
        base_repeats=True,
    )  # fmt: skip


def gpu(uuid, target="sm_90"):
    return GpuRecord(
        uuid=uuid, name="card", target=target, driver="1", multiprocessors=132, memory_bytes=1, l2_bytes=1,
        ecc=None, mig=None, sm_clock_mhz=(1.0, 2.0, 3.0), memory_clock_mhz=None, temperature_c=None,
        power_w=None,
        power_limit_w=None, throttled=(), power_capped_fraction=None, other_processes=(), peak_tflops=None,
        peak_tb_per_s=None, wall_s=1.0, busy_s=0.9, trustworthy=True,
    )  # fmt: skip


def found(uuid="GPU-1", cases=("a",), not_timed=(), note=""):
    return TimingResults(
        schema=results.SCHEMA,
        irdiff_version="0",
        created="2026-01-01T00:00:00+00:00",
        host={uuid: "linux"},
        protocol=Protocol(
            budget_s=600.0,
            threshold=0.01,
            precision=0.005,
            confidence=0.95,
            processes=6,
            seed=0,
            verify_only=False,
        ),
        gpus=(gpu(uuid),),
        cases=tuple(
            CaseTiming(case=c, gpu=uuid, outputs=check(), measurement=None, note=note) for c in cases
        ),
        not_timed=tuple(NotTimed(case=c, reason="no such GPU here: sm_100") for c in not_timed),
        duration_s=2.0,
    )


def test_round_trip(tmp_path):
    results.write(tmp_path, found())
    assert results.load(tmp_path) == found()


def test_a_folder_without_timings(tmp_path):
    assert results.load(tmp_path) is None


def test_hosts_add_to_each_other(tmp_path):
    results.write(tmp_path, found("GPU-1", ("a",), ("b",)))
    results.write(tmp_path, found("GPU-2", ("b",), ("a",)))
    merged = results.load(tmp_path)
    assert [(row.case, row.gpu) for row in merged.cases] == [("a", "GPU-1"), ("b", "GPU-2")]
    assert [row.uuid for row in merged.gpus] == ["GPU-1", "GPU-2"]
    assert merged.not_timed == ()
    assert merged.duration_s == 4.0


def test_of_the_same_case_and_gpu_the_last_counts():
    merged = results.merge([found(note="old"), found(note="new")])
    assert [row.note for row in merged.cases] == ["new"]


def test_another_schema_is_refused(tmp_path):
    row = json.loads(results.dump(found())) | {"schema": "irdiff-timing/9"}
    (tmp_path / results.TIMING_FILE).write_text(json.dumps(row))
    with pytest.raises(RunFolderError, match="irdiff-timing/9"):
        results.load(tmp_path)


@pytest.mark.parametrize("content", ["{", "[]", '{"schema": 3}', "NaN"])
def test_what_is_not_a_timing_file_is_refused(tmp_path, content):
    (tmp_path / results.TIMING_FILE).write_text(content)
    with pytest.raises(RunFolderError):
        results.load(tmp_path)


def test_a_link_is_not_followed(tmp_path):
    (tmp_path / "elsewhere").write_bytes(results.dump(found()))
    (tmp_path / results.TIMING_FILE).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RunFolderError):
        results.load(tmp_path)


def sample(case, gpu="GPU-1", elapsed=1.0):
    return Sample(
        gpu=gpu, case=case, process=0, round=0, position=0, arm="base", launches=1, elapsed_us=elapsed
    )


def test_samples_of_a_case_measured_again_are_replaced(tmp_path):
    results.write_samples(tmp_path, [sample("a"), sample("b")])
    results.write_samples(tmp_path, [sample("a", elapsed=2.0), sample("a", "GPU-2")])
    rows = results.read_samples(tmp_path / results.SAMPLES_FILE)
    assert {(row.case, row.gpu, row.elapsed_us) for row in rows} == {
        ("b", "GPU-1", 1.0), ("a", "GPU-1", 2.0), ("a", "GPU-2", 1.0)
    }  # fmt: skip


def test_samples_from_json(tmp_path):
    path = tmp_path / "samples.json"
    path.write_text(json.dumps([dataclasses.asdict(sample("a"))]))
    assert results.read_samples(path) == [sample("a")]


def test_what_holds_no_samples_is_refused(tmp_path):
    path = tmp_path / "samples.json"
    path.write_text('[{"case": "a"}]')
    with pytest.raises(RunFolderError, match="does not hold samples"):
        results.read_samples(path)


def test_folders_are_joined(tmp_path):
    here, there = tmp_path / "h200", tmp_path / "b200"
    for folder, uuid, name in ((here, "GPU-1", "a"), (there, "GPU-2", "b")):
        folder.mkdir()
        results.write(folder, found(uuid, (name,)))
        results.write_samples(folder, [sample(name, uuid)])
    merged = results.join(here, [there])
    assert [row.case for row in merged.cases] == ["a", "b"]
    assert results.load(here) == merged
    assert {row.gpu for row in results.read_samples(here / results.SAMPLES_FILE)} == {"GPU-1", "GPU-2"}


def test_folders_without_timings(tmp_path):
    assert results.join(tmp_path, [tmp_path / "other"]) is None
