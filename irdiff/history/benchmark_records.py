"""Writes records for PyTorch's benchmark database and dashboard.

One record is one metric of one case of one version, with the fields of the table `oss_ci_benchmark_v3`
(pytorch/test-infra, clickhouse_db_schema/oss_ci_benchmark_v3/schema.sql). The uploader adds the fields that
name the job.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from irdiff import case_ids
from irdiff.compare import statistics
from irdiff.history.lines import HistoryCase, SeriesLines, TimingLine
from irdiff.history.versions import Version

Record = dict[str, Any]

_REPOSITORY = "triton-lang/triton"


def records(series: SeriesLines) -> Iterator[Record]:
    for case in series.cases.values():
        lines = {
            fact: values
            for fact, values in series.facts.get(case.case_id, {}).items()
            if fact in statistics.FACTS
        }
        if case.case_id in series.costs_s:
            lines["compile_cpu_s"] = series.costs_s[case.case_id]
        for name, values in lines.items():
            for version, value in zip(series.versions, values, strict=True):
                if value is not None:
                    yield _record(case, version, name, [value], gpu="", more={})
        for line in series.timings.get(case.case_id, ()):
            yield from _timings(series, case, line)


def _timings(series: SeriesLines, case: HistoryCase, line: TimingLine) -> Iterator[Record]:
    for version, point, outputs in zip(series.versions, line.points, line.outputs, strict=True):
        if point is not None:
            more = {name: f"{getattr(point, name):.6f}" for name in ("ratio", "low", "high")}
            more |= {"reference": line.reference, "outputs": outputs or ""}
            yield _record(case, version, "latency_us", [point.median_us], gpu=line.gpu, more=more)


def _record(
    case: HistoryCase, version: Version, name: str, values: list[float], *, gpu: str, more: dict[str, str]
) -> Record:
    label = case_ids.parse(case.case_id).label
    is_release = version.name.startswith("triton==")
    triton = {"repo": _REPOSITORY, "branch": "", "extra_info": {}}
    triton |= {"sha": "", "version": version.label} if is_release else {"sha": version.name, "version": ""}
    runner = {
        "name": "",
        "type": case.target,
        "cpu_info": "",
        "cpu_count": 0,
        "mem_info": "",
        "extra_info": {},
    }
    runner |= {"gpu_info": gpu, "gpu_count": int(bool(gpu)), "gpu_mem_info": ""}
    runner |= {"avail_mem_in_gb": 0, "avail_gpu_mem_in_gb": 0}
    return {
        "benchmark": {
            "name": "irdiff",
            "mode": "inference",
            "dtype": label.partition("-")[0],
            "extra_info": {"tier": case.tier, "case": case.case_id},
        },
        "model": {
            "name": f"{case.workload}:{label}",
            "type": "triton kernel",
            "backend": "triton",
            "origins": ["irdiff"],
            "extra_info": {"kernel": case.kernel, "target": case.target},
        },
        "inputs": {},
        "dependencies": {"triton": triton},
        "runners": [runner],
        "metric": {"name": name, "benchmark_values": values, "target_value": 0.0, "extra_info": more},
    }
