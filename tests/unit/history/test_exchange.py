from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from irdiff.history import benchmark_records, database, lines
from irdiff.history.database import HistoryError
from tests.unit.history import histories

SCHEMA = Path(__file__).parents[2] / "data" / "history" / "oss_ci_benchmark_v3.schema.json"


def dump(path: Path) -> dict[str, list]:
    with database.reading(path) as history:
        return {table: history.rows(f"SELECT * FROM {table} ORDER BY ALL") for table in database.TABLES}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (case, *_) = histories.filled(tmp_path / "h", ["3.8.0", "3.9.0"], 8)
    with database.writing(tmp_path / "h") as history:
        histories.session(history, case, {"3.8.0": (1.05, 0.002), "3.9.0": (1.0, 0.002)})
    return tmp_path / "h"


def test_what_was_exported_is_imported_whole(file: Path, tmp_path: Path) -> None:
    with database.reading(file) as history:
        database.export(history, tmp_path / "it's here")
    for _ in range(2):
        with database.writing(tmp_path / "copy") as history:
            database.take(history, tmp_path / "it's here")
        assert dump(tmp_path / "copy") == dump(file)


def test_an_import_adds_to_what_is_there(file: Path, tmp_path: Path) -> None:
    with database.reading(file) as history:
        database.export(history, tmp_path / "out")
    histories.filled(tmp_path / "other", ["3.6.0"], 8)
    with database.writing(tmp_path / "other") as history:
        database.take(history, tmp_path / "out")
        names = history.rows("SELECT label FROM versions ORDER BY sort_key")
    assert [name for (name,) in names] == ["3.6.0", "3.8.0", "3.9.0"]


def test_half_a_folder_and_other_columns_are_refused(file: Path, tmp_path: Path) -> None:
    with database.reading(file) as history:
        database.export(history, tmp_path / "out")
        history.run(f"COPY versions TO '{tmp_path / 'out' / 'facts.parquet'}' (FORMAT parquet)")
    before = dump(file)
    with (
        pytest.raises(HistoryError, match="does not hold the table 'facts'"),
        database.writing(file) as history,
    ):
        database.take(history, tmp_path / "out")
    (tmp_path / "out" / "facts.parquet").unlink()
    with pytest.raises(HistoryError, match=r"lacks facts\.parquet"), database.writing(file) as history:
        database.take(history, tmp_path / "out")
    assert dump(file) == before


def test_records_hold_to_the_published_schema(file: Path) -> None:
    schema = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text()))
    with database.reading(file) as history:
        found = list(benchmark_records.records(lines.read(history, "releases")))
    for record in found:
        schema.validate(json.loads(json.dumps(record)))
    assert {record["metric"]["name"] for record in found} >= {"registers", "compile_cpu_s", "latency_us"}
    timed = [record for record in found if record["metric"]["name"] == "latency_us"]
    assert [record["metric"]["benchmark_values"] for record in timed] == [[52.5], [50.0]]
    assert timed[0]["runners"][0]["gpu_info"] == "NVIDIA H200"
    assert timed[0]["dependencies"]["triton"]["version"] == "3.8.0"
    with pytest.raises(jsonschema.ValidationError):
        schema.validate({**timed[0], "metric": {"name": "x", "benchmark_values": ["1"]}})
