"""Writes a site of plain files: a page, a script, a style, a chart library, and data that the page loads on
demand.

    index.html    every view, by what stands behind `#`
    assets/       what this module copies: nothing is loaded from anywhere else
    data/         columns, each file a script that hands its compressed content to the page
    runs/         reports of the runs whose folders are still there

Data are scripts because a browser that opens a page from a disk may load scripts, and nothing else.
"""

from __future__ import annotations

import base64
import datetime
import json
import shutil
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from irdiff.errors import RunFolderError
from irdiff.history import lines, page_data, steps
from irdiff.history.database import Database, HistoryError
from irdiff.history.lines import VersionPair
from irdiff.history.page_data import Json

_MARK = "irdiff-history-site"
"""A file in a folder that irdiff wrote: only such a folder is written again."""
_LEVEL = 9


@dataclass(frozen=True, kw_only=True)
class Written:
    versions: int
    cases: int
    steps: int
    reports: int
    overview_bytes: int
    """All that a browser loads to show the first page."""
    size_bytes: int


Render = Callable[[Path], str]
"""Renders the report of a run folder. Raises RunFolderError if the folder holds no run."""


def write(database: Database, out: Path, assets: Path, render: Render | None) -> Written:
    """Replaces only what an earlier call wrote. Raises HistoryError if `out` holds something else."""
    names = lines.series_names(database)
    if not names:
        raise HistoryError(
            "the history is empty", hint="fill it: irdiff history backfill triton==3.8.0..3.9.0"
        )
    histories = [lines.read(database, name) for name in names]
    stepped = {series.name: steps.find(series) for series in histories}
    _clear(out)
    shutil.copytree(assets, out, dirs_exist_ok=True)
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="minutes")
    content = page_data.overview(histories, stepped, now)
    reports = 0
    for number, (series, series_data) in enumerate(zip(histories, content["series"], strict=True)):
        for place, name in enumerate(series_data["workloads"]):
            _put(out, f"kernel-{number}-{place}", {"workload": name, **page_data.workload(series, name)})
        for pair, pair_entry in zip(series.pairs, series_data["pairs"], strict=True):
            changes = page_data.pair_steps(series, pair, stepped[series.name])
            _put(out, f"pair-{number}-{pair.base}-{pair.head}", changes)
            pair_entry["report"] = _report(out, pair, render)
            reports += pair_entry["report"] is not None
    _put(out, "overview", content)
    first = [out / "index.html", out / "data" / "overview.js", *(out / "assets").glob("*.*s")]
    return Written(
        versions=sum(len(series.versions) for series in histories),
        cases=len({case for series in histories for case in series.cases}),
        steps=sum(map(len, stepped.values())),
        reports=reports,
        overview_bytes=sum(path.stat().st_size for path in first),
        size_bytes=sum(path.stat().st_size for path in out.rglob("*") if path.is_file()),
    )


def _clear(out: Path) -> None:
    try:
        if out.exists() and any(out.iterdir()):
            if not (out / _MARK).is_file():
                raise HistoryError(
                    f"{out} is there and was not written by irdiff: it is left as it is",
                    hint="name an empty folder",
                )
            for name in ("data", "runs", "assets"):
                shutil.rmtree(out / name, ignore_errors=True)
        (out / "data").mkdir(parents=True, exist_ok=True)
        (out / _MARK).write_text("", encoding="utf-8")
    except OSError as error:
        raise HistoryError(
            f"{out} cannot be written: {error.strerror}", hint="name another folder"
        ) from error


def _report(out: Path, pair: VersionPair, render: Render | None) -> str | None:
    """Returns None if the run's folder is gone, or holds another run."""
    folder = Path(pair.place)
    if render is None or not pair.place or not (folder / "run.json").is_file():
        return None
    try:
        text = render(folder)
    except RunFolderError:
        return None
    path = out / "runs" / f"{pair.run}.html"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return f"runs/{path.name}"


def _put(out: Path, name: str, content: Json) -> None:
    packed = zlib.compress(json.dumps(content, separators=(",", ":")).encode(), _LEVEL)
    text = f'irdiffData("{name}","{base64.b64encode(packed).decode()}");\n'
    (out / "data" / f"{name}.js").write_text(text, encoding="ascii")
