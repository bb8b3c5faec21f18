"""Small histories, the same for the same arguments, and the committed one of eleven releases."""

import tempfile
import zipfile
from dataclasses import replace
from functools import cache
from pathlib import Path

from irdiff.history import add, database, lines
from irdiff.history.inventory import CompiledCase, Inventory
from irdiff.history.versions import RELEASES, Version, sort_key
from tests.unit import runs as build


def version(label):
    digests = {"toolchain": label * 8, "corpus": "c" * 64}
    key, name = sort_key(label), f"triton=={label}"
    return Version(name=name, series=RELEASES, sort_key=key, label=label, **digests)


def run(base, head, *cases, **changes):
    made = build.run(*cases, **changes)
    return replace(
        made,
        base=replace(made.base, spec=f"triton=={base}", version=base, digest=base * 8),
        head=replace(made.head, spec=f"triton=={head}", version=head, digest=head * 8),
    )


def kept(path, *runs):
    """The lines of releases once the runs are added to a history."""
    with database.writing(path) as history:
        for one in runs:
            add.add_run(history, one, None)
    with database.reading(path) as history:
        return lines.read(history, RELEASES)


def made(case_id, **facts):
    launch = build.launch(case_id)
    names = {name: getattr(launch, name) for name in ("workload", "kernel", "target", "tier")}
    times = {"wall_s": {"ttir": 0.5, "ptx": 0.25}, "cpu_s": {"ttir": 0.25, "ptx": 0.125}}
    return build.blank(CompiledCase, id=case_id, facts=facts, **names, **times)


def inventory(*cases):
    return Inventory(cases=cases, wall_s=10.0, cpu_s=8.0, compiled=len(cases))


SAMPLE = Path(__file__).parents[3] / "reports/samples/history-3.2.0-3.9.0.zip"


def sample(path):
    """The committed history of eleven releases, 192 cases for four targets, in a file."""
    path.write_bytes(_sample())
    return path


@cache
def _sample():
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(SAMPLE) as archive:
        archive.extractall(folder)
        with database.writing(Path(folder, "sample")) as history:
            database.take(history, Path(folder, "parquet"))
        return Path(folder, "sample").read_bytes()


def session(history, case, ratios, name="one", *, outputs="equal", trustworthy=True, processes=18):
    """Timings of one case: ratio and half of its interval's width, by version."""
    names = ("GPU-1", "NVIDIA H200", "sm_90", "580", "triton==3.9.0")
    card = (*names, 1980.0, 3201.0, 41.0, 440.0, "", trustworthy, processes)
    history.put("sessions", [(name, "2026-11-22", *card)])
    rows = [
        (name, f"triton=={label}", case, 50.0 * ratio, ratio, ratio - half, ratio + half, 0.002, outputs)
        for label, (ratio, half) in ratios.items()
    ]
    history.put("timings", rows)
