"""The committed history of eleven releases: its site opens, and its tables are a history."""

from __future__ import annotations

import base64
import itertools
import json
import re
import zipfile
import zlib
from pathlib import Path

import pytest

from irdiff.history import alerts, database, lines, steps
from irdiff.history.lines import SeriesLines

SAMPLE = Path(__file__).parents[3] / "reports/samples/history-3.2.0-3.9.0.zip"
RELEASES = ["3.2.0", "3.3.0", "3.3.1", "3.4.0", "3.5.0", "3.5.1", "3.6.0", "3.7.0", "3.7.1", "3.8.0", "3.9.0"]
MAX_BYTES = 1_500_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("sample")
    with zipfile.ZipFile(SAMPLE) as archive:
        archive.extractall(place)
    return place


@pytest.fixture(scope="module")
def series(folder: Path) -> SeriesLines:
    with database.writing(folder / "h") as history:
        database.take(history, folder / "parquet")
    with database.reading(folder / "h") as history:
        return lines.read(history, "releases")


def test_it_is_small_and_every_page_of_the_site_has_its_data(folder: Path) -> None:
    assert SAMPLE.stat().st_size <= MAX_BYTES
    page = (folder / "site/index.html").read_text()
    for name in re.findall(r'(?:src|href)="((?!https?:|data:|#)[^"]+)"', page):
        assert (folder / "site" / name).is_file(), name
    overview = data(folder, "overview")["series"][0]
    assert overview["versions"] == RELEASES
    wanted = [f"kernel-0-{place}" for place in range(len(overview["workloads"]))]
    wanted += [f"pair-0-{pair['base']}-{pair['head']}" for pair in overview["pairs"]]
    for name in wanted:
        assert data(folder, name), name


def data(folder: Path, name: str) -> dict:
    text = (folder / "site/data" / f"{name}.js").read_text()
    return json.loads(zlib.decompress(base64.b64decode(text.split('"')[3])))


def test_its_tables_hold_what_the_text_beside_it_describes(series: SeriesLines) -> None:
    """`reports/samples/history-3.2.0-3.9.0.md`."""
    assert [version.label for version in series.versions] == RELEASES
    assert [(pair.base, pair.head) for pair in series.pairs] == list(itertools.pairwise(range(len(RELEASES))))
    assert len(series.timings) == 48
    found = [step for step in steps.find(series) if series.versions[step.head].label == "3.7.1"]
    fences = [step for step in found if step.group and "fence" in (step.group.pass_name or "").lower()]
    (fence,) = (step for step in fences if step.cases[0].endswith("@sm_90"))
    assert (len(fence.cases), fence.slower, fence.faster) == (15, 9, 0)
    alert = alerts.check(series)
    assert (alert.version, len(alert.slower), alert.broken) == ("3.9.0", 8, ())
