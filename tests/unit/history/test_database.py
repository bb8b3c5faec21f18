"""What a history holds after runs and inventories are added, exported and imported, or a writer fails."""

import json
from dataclasses import replace
from pathlib import Path

import duckdb
import jsonschema
import pytest

from irdiff.history import add, benchmark_records, database, lines
from irdiff.history.database import HistoryError
from irdiff.model import Verdict
from tests.unit import runs
from tests.unit.history import histories

CASE = "matmul/tma:fp16@sm_90"
SCHEMA = Path(__file__).parents[2] / "data" / "history" / "oss_ci_benchmark_v3.schema.json"


@pytest.fixture
def file(tmp_path):
    return tmp_path / "deep" / "history.duckdb"


def facts(file):
    with database.reading(file) as history:
        rows = history.rows("SELECT version, fact, value, origin FROM facts")
    return {
        (version.removeprefix("triton=="), fact): (value, origin) for version, fact, value, origin in rows
    }


def dump(file):
    with database.reading(file) as history:
        return {table: history.rows(f"SELECT * FROM {table} ORDER BY ALL") for table in database.TABLES}


def put(file, *found):
    with database.writing(file) as history:
        return [add.add_run(history, run, None) for run in found]


def test_unchanged_code_carries_facts_along_in_any_order(file):
    same = runs.case(CASE, Verdict.UNCHANGED)
    base, head = {"registers": 10, "binary_bytes": 7}, {"registers": 12}
    put(file, histories.run("3.6.0", "3.7.0", same), histories.run("3.7.0", "3.8.0", same))
    assert facts(file) == {}
    put(file, histories.run("3.8.0", "3.9.0", runs.case(CASE, Verdict.CHANGED, base=base, head=head)))
    found = facts(file)
    assert found["3.6.0", "registers"] == found["3.7.0", "registers"] == (10, "carried")
    assert ("3.7.0", "binary_bytes") not in found
    assert found["3.8.0", "binary_bytes"] == (7, "measured")


def test_what_was_not_compared_as_a_whole_carries_nothing(file):
    moved = runs.case(CASE, Verdict.CHANGED, base={"ttgir.dot": 1}, head={"ttgir.dot": 2})
    put(file, histories.run("3.8.0", "3.9.0", moved))
    for verdict in (Verdict.IR_ONLY, Verdict.CHANGED, Verdict.BROKEN, Verdict.UNCHANGED):
        part = histories.run("3.7.0", "3.8.0", runs.case(CASE, verdict))
        stages = ("ptx",) if verdict is Verdict.UNCHANGED else ()
        put(file, replace(part, options=replace(part.options, stages=stages)))
        assert ("3.7.0", "ttgir.dot") not in facts(file), verdict


def test_a_base_that_is_compared_later_than_its_head_stands_before_it(file):
    """A night that was left out and is made up for: what is newest stays newest."""
    found = runs.run(runs.case(CASE, Verdict.CHANGED))

    def night(day, base, head):
        sides = {
            which: replace(found.head, spec=f"({name * 10})", digest=name)
            for which, name in (("base", base), ("head", head))
        }
        return replace(found, created=f"2026-11-{day}T02:17:00+00:00", **sides)

    put(file, night("25", "b", "d"), night("26", "d", "e"), night("27", "a", "e"), night("27", "c", "d"))
    with database.reading(file) as history:
        read = lines.read(history, "commits")
    assert "".join(version.label[0] for version in read.versions) == "bcdae"
    assert all(pair.base < pair.head for pair in read.pairs)


def test_a_failed_writer_leaves_everything_as_it_was(file):
    put(file, histories.run("3.8.0", "3.9.0", runs.case(CASE, Verdict.CHANGED)))
    before = dump(file)
    with pytest.raises(ZeroDivisionError), database.writing(file) as history:
        add.add_run(history, histories.run("3.7.0", "3.8.0", runs.case(CASE, Verdict.CHANGED)), None)
        raise ZeroDivisionError
    assert dump(file) == before


def test_what_is_no_history_is_refused_and_left_as_it_is(tmp_path):
    absent, text, other = tmp_path / "absent", tmp_path / "text", tmp_path / "other"
    with pytest.raises(HistoryError, match="there is no history"), database.reading(absent):
        pass
    text.write_text("not a database")
    with pytest.raises(HistoryError, match="opened as a history"), database.writing(text):
        pass
    with duckdb.connect(str(other)) as connection:
        connection.execute("CREATE TABLE mine (x INTEGER)")
    with pytest.raises(HistoryError, match="has schema 'None'"), database.writing(other):
        pass
    with duckdb.connect(str(other)) as connection:
        assert connection.execute("SELECT table_name FROM duckdb_tables()").fetchall() == [("mine",)]


@pytest.fixture
def filled(tmp_path):
    """A history of real runs and timings that was exported, too."""
    with database.reading(histories.sample(tmp_path / "h")) as history:
        database.export(history, tmp_path / "it's here")
    return tmp_path / "h"


@pytest.mark.slow
def test_what_was_exported_is_imported_whole_beside_what_is_there(filled, tmp_path):
    histories.kept(tmp_path / "other", histories.run("3.0.0", "3.1.0", runs.case(CASE)))
    for name in ("copy", "copy", "other"):
        with database.writing(tmp_path / name) as history:
            database.take(history, tmp_path / "it's here")
    assert dump(tmp_path / "copy") == dump(filled)
    with database.reading(tmp_path / "other") as history:
        labels = history.rows("SELECT label FROM versions ORDER BY sort_key")
    assert [*labels[:3], labels[-1], len(labels)] == [("3.0.0",), ("3.1.0",), ("3.2.0",), ("3.9.0",), 13]


def test_half_a_folder_and_other_columns_are_refused(filled, tmp_path):
    folder = tmp_path / "it's here"
    (folder / "facts.parquet").write_bytes((folder / "versions.parquet").read_bytes())
    before = dump(filled)
    wrong = pytest.raises(HistoryError, match="'facts'")
    with wrong, database.writing(filled) as history:
        database.take(history, folder)
    (folder / "facts.parquet").unlink()
    lacks = pytest.raises(HistoryError, match=r"facts\.parquet")
    with lacks, database.writing(filled) as history:
        database.take(history, folder)
    assert dump(filled) == before


def test_records_hold_to_the_published_schema(filled):
    schema = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text()))
    with database.reading(filled) as history:
        found = list(benchmark_records.records(lines.read(history, "releases")))
    for record in found[::100]:
        schema.validate(json.loads(json.dumps(record)))
    assert {record["metric"]["name"] for record in found} >= {"registers", "compile_cpu_s", "latency_us"}
    timed = [record for record in found if record["metric"]["name"] == "latency_us"]
    assert (len(timed), timed[0]["runners"][0]["gpu_info"]) == (513, "NVIDIA H200")
    assert timed[0]["dependencies"]["triton"]["version"] == "3.2.0"
