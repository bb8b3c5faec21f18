"""What `irdiff time` found: the content of `timing.json`, beside `run.json` in a run folder.

Samples are kept whole in `timing-samples.parquet`: one row a sample, with `gpu`, `case`, `process`, `round`,
`position`, `arm` (`base`, `control`, `head`), `launches` and `elapsed_us` (of all launches of the sample).
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from irdiff.errors import RunFolderError

SCHEMA = "irdiff-timing/1"
TIMING_FILE = "timing.json"
SAMPLES_FILE = "timing-samples.parquet"
MAX_TIMING_BYTES = 64 << 20


class Speed(StrEnum):
    """The verdict of one measured case."""

    SLOWER = "slower"
    FASTER = "faster"
    SAME = "same"
    """The interval lies inside the threshold on both sides."""
    UNCLEAR = "unclear"
    """Too little precision within the budget to say any of the three."""


class OutputStatus(StrEnum):
    """How what the two sides wrote compares."""

    EQUAL = "equal"
    """The same bytes."""
    CLOSE = "close"
    """Within the workload's tolerance."""
    DIFFERENT = "different"
    OUT_OF_BOUNDS = "out of bounds"
    """A side wrote outside of its buffers."""
    FAULT = "fault"
    """A side ended abnormally: an illegal address, a trap, an error of the driver."""
    HANG = "hang"
    """A side did not end within its limit."""
    NOT_LAUNCHED = "not launched"
    """The binary and the captured launch do not fit, or an input cannot be made here."""
    NOT_CHECKED = "not checked"
    """Recorded samples were judged; nothing ran."""


BAD_OUTPUTS = frozenset(OutputStatus) - {
    OutputStatus.EQUAL,
    OutputStatus.CLOSE,
    OutputStatus.NOT_CHECKED,
}


@dataclass(frozen=True, kw_only=True)
class OutputCheck:
    """Both sides run once from the same inputs."""

    status: OutputStatus
    side: str | None
    """The side to blame where it is known: `base`, `head`."""
    message: str
    arguments: tuple[str, ...]
    """Names of the arguments whose contents differ."""
    max_ulp: int | None
    relative_norm: float | None
    """‖head - base‖ / ‖base‖ over the worst argument."""
    base_repeats: bool | None
    """Whether base gives the same bytes when it runs twice (atomics may not)."""


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """One case timed on one GPU. Times are medians over all samples; ratios are head ÷ base."""

    base_us: float
    head_us: float
    ratio: float
    ratio_low: float
    ratio_high: float
    """95 % interval, bootstrap over processes."""
    control_ratio: float
    """The same, of base's binary loaded a second time."""
    control_low: float
    control_high: float
    noise_floor: float
    """What the control could have been off by: a ratio must leave it to count."""
    p_value: float
    q_value: float
    """After Benjamini-Hochberg over the cases of the GPU."""
    speed: Speed
    processes: int
    samples: int
    launches_per_sample: int
    tflops: float | None
    tb_per_s: float | None
    percent_of_peak: float | None
    """Of the card's own measured peak, the larger of compute and memory."""


@dataclass(frozen=True, kw_only=True)
class CaseTiming:
    """One case on one GPU."""

    case: str
    gpu: str
    """UUID."""
    outputs: OutputCheck
    measurement: Measurement | None
    note: str
    """Why there is no measurement, where there is none."""


@dataclass(frozen=True, kw_only=True)
class NotTimed:
    case: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class GpuRecord:
    """One GPU and the conditions it was measured under."""

    uuid: str
    name: str
    target: str
    driver: str
    multiprocessors: int
    memory_bytes: int
    l2_bytes: int
    ecc: str | None
    mig: str | None
    sm_clock_mhz: tuple[float, float, float] | None
    """Least, median and greatest while kernels ran."""
    memory_clock_mhz: tuple[float, float, float] | None
    temperature_c: tuple[float, float, float] | None
    power_w: tuple[float, float, float] | None
    power_limit_w: float | None
    throttled: tuple[str, ...]
    """Reasons that make figures unfit: thermal and hardware slowdowns."""
    power_capped_fraction: float | None
    """Share of the readings in which the power limit held the clock down (ordinary under matrix work)."""
    other_processes: tuple[str, ...]
    peak_tflops: float | None
    peak_tb_per_s: float | None
    """Measured here: an 8192³ fp16 matrix product and a large copy through torch."""
    wall_s: float
    busy_s: float
    """Of it, kernels of this GPU were in flight."""
    trustworthy: bool
    """False on a busy or throttled GPU: its results are not a pass."""


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """How it was measured."""

    budget_s: float
    threshold: float
    precision: float
    """Half width of the interval at which a case is done."""
    confidence: float
    processes: int
    """Least number of processes a case."""
    seed: int
    verify_only: bool


@dataclass(frozen=True, kw_only=True)
class TimingResults:
    """The content of `timing.json`."""

    schema: str
    irdiff_version: str
    created: str
    host: Mapping[str, str]
    """Host name, kernel, and versions of what measured."""
    protocol: Protocol
    gpus: tuple[GpuRecord, ...]
    cases: tuple[CaseTiming, ...]
    not_timed: tuple[NotTimed, ...]
    duration_s: float


_adapter = TypeAdapter(TimingResults)


def dump(results: TimingResults) -> bytes:
    rows = _adapter.dump_python(results, mode="json")
    return (json.dumps(rows, indent=1, sort_keys=True, ensure_ascii=True) + "\n").encode()


def json_schema() -> dict[str, Any]:
    return _adapter.json_schema()


def load(folder: Path) -> TimingResults | None:
    """The timings of a run folder, or None. Raises RunFolderError for what is not of this schema."""
    path = folder / TIMING_FILE
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RunFolderError(f"{path} cannot be read: {error.strerror}") from error
    with os.fdopen(descriptor, "rb") as file:
        content = file.read(MAX_TIMING_BYTES + 1)
    if len(content) > MAX_TIMING_BYTES:
        raise RunFolderError(f"{path} has more than {MAX_TIMING_BYTES} bytes")
    try:
        results = _adapter.validate_json(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))[:200]
        raise RunFolderError(f"{path} is not a valid timing file: {where}: {first['msg']}") from error
    if results.schema != SCHEMA:
        raise RunFolderError(f"{path} has schema {results.schema!r}, this irdiff reads {SCHEMA!r}")
    return results


def write(folder: Path, results: TimingResults) -> None:
    """Adds the results to those that the folder already has from other GPUs."""
    before = load(folder)
    merged = merge([before, results]) if before else results
    _replace(folder / TIMING_FILE, dump(merged))


def _replace(path: Path, content: bytes) -> None:
    descriptor, part = tempfile.mkstemp(dir=path.parent, prefix=".part-")
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    Path(part).chmod(0o644)
    Path(part).replace(path)


def merge(parts: Sequence[TimingResults]) -> TimingResults:
    """Timings of several hosts as one: of the same case on the same GPU the last one counts.

    A case that any of them timed is not listed as not timed.
    """
    last = parts[-1]
    cases = {(row.case, row.gpu): row for part in parts for row in part.cases}
    gpus = {row.uuid: row for part in parts for row in part.gpus}
    timed = {case for case, _ in cases}
    not_timed = {row.case: row for part in parts for row in part.not_timed if row.case not in timed}
    hosts: dict[str, str] = {}
    for part in parts:
        hosts.update(part.host)
    return replace(
        last,
        host=hosts,
        gpus=tuple(gpus[key] for key in sorted(gpus)),
        cases=tuple(cases[key] for key in sorted(cases)),
        not_timed=tuple(not_timed[key] for key in sorted(not_timed)),
        duration_s=sum(part.duration_s for part in parts),
    )


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One row of the samples file."""

    gpu: str
    case: str
    process: int
    round: int
    position: int
    """Of the arm within its round, which is in random order."""
    arm: str
    launches: int
    elapsed_us: float


_COLUMNS = ("gpu", "case", "process", "round", "position", "arm", "launches", "elapsed_us")


def write_samples(folder: Path, samples: Iterable[Sample]) -> None:
    """Replaces the samples of the (case, GPU) pairs that are given; keeps all others."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    fresh = list(samples)
    replaced = {(row.case, row.gpu) for row in fresh}
    path = folder / SAMPLES_FILE
    kept = [row for row in read_samples(path) if (row.case, row.gpu) not in replaced] if path.exists() else []
    rows = [*kept, *fresh]
    table = pa.table({name: [getattr(row, name) for row in rows] for name in _COLUMNS})
    part = path.with_name(f".part-{path.name}")
    pq.write_table(table, part, compression="zstd")
    part.replace(path)


def read_samples(path: Path) -> list[Sample]:
    """Samples of a parquet file, or of a JSON file with a list of the same rows (for `--simulate`)."""
    try:
        if path.suffix == ".json":
            return [Sample(**row) for row in json.loads(path.read_text(encoding="utf-8"))]
        import pyarrow.parquet as pq

        table = pq.read_table(path, columns=list(_COLUMNS)).to_pydict()
        return [
            Sample(**dict(zip(_COLUMNS, row, strict=True)))
            for row in zip(*(table[n] for n in _COLUMNS), strict=True)
        ]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise RunFolderError(f"{path} does not hold samples: {error}") from error


def join(target: Path, sources: Sequence[Path]) -> TimingResults | None:
    """Brings the timings of other copies of a run folder into `target`: the timing part of `irdiff merge`.

    None where no folder has timings. Raises RunFolderError where a file is not what it says. That the
    folders are of the same run is the caller's to check.
    """
    folders = [folder for folder in (target, *sources) if (folder / TIMING_FILE).exists()]
    if not folders:
        return None
    parts = [part for folder in folders if (part := load(folder)) is not None]
    for folder in folders:
        path = folder / SAMPLES_FILE
        if folder != target and path.exists():
            write_samples(target, read_samples(path))
    merged = merge(parts)
    _replace(target / TIMING_FILE, dump(merged))
    return merged
