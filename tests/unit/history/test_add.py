from __future__ import annotations

from pathlib import Path

import pytest

from irdiff.history import add, database
from irdiff.history.database import HistoryError
from irdiff.model import Verdict
from tests.unit.history import histories

CASE = "matmul/tma:fp16@sm_90"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "history.duckdb"


def facts(file: Path) -> dict[tuple[str, str], tuple[float, str]]:
    with database.reading(file) as history:
        rows = history.rows("SELECT version, fact, value, origin FROM facts")
    return {
        (version.removeprefix("triton=="), fact): (value, origin) for version, fact, value, origin in rows
    }


def counts(file: Path) -> dict[str, int]:
    with database.reading(file) as history:
        return {name: history.value(f"SELECT count(*) FROM {name}") for name in database.TABLES}


def put(file: Path, *runs) -> list[bool]:
    with database.writing(file) as history:
        return [add.add_run(history, run, None) for run in runs]


def test_a_run_is_added_once(file: Path, build) -> None:
    case = build.case(CASE, Verdict.CHANGED, base={"registers": 10}, head={"registers": 12})
    run = histories.run("3.8.0", "3.9.0", case)
    assert put(file, run) == [True]
    before = counts(file)
    assert put(file, run, run) == [False, False]
    assert counts(file) == before
    assert before["runs"] == before["verdicts"] == 1
    assert facts(file) == {
        ("3.8.0", "registers"): (10, "measured"),
        ("3.9.0", "registers"): (12, "measured"),
    }


def test_unchanged_code_carries_facts_along_in_any_order(file: Path, build) -> None:
    same = build.case(CASE, Verdict.UNCHANGED)
    moved = build.case(
        CASE, Verdict.CHANGED, base={"registers": 10, "binary_bytes": 7}, head={"registers": 12}
    )
    put(file, histories.run("3.6.0", "3.7.0", same), histories.run("3.7.0", "3.8.0", same))
    assert facts(file) == {}
    put(file, histories.run("3.8.0", "3.9.0", moved))
    found = facts(file)
    assert found["3.6.0", "registers"] == found["3.7.0", "registers"] == (10, "carried")
    assert ("3.7.0", "binary_bytes") not in found
    assert found["3.8.0", "binary_bytes"] == (7, "measured")


@pytest.mark.parametrize("verdict", [Verdict.ABSORBED, Verdict.CHANGED, Verdict.BROKEN])
def test_other_verdicts_carry_nothing(file: Path, build, verdict: Verdict) -> None:
    moved = build.case(CASE, Verdict.CHANGED, base={"registers": 10}, head={"registers": 12})
    put(
        file,
        histories.run("3.8.0", "3.9.0", moved),
        histories.run("3.7.0", "3.8.0", build.case(CASE, verdict)),
    )
    assert ("3.7.0", "registers") not in facts(file)


def test_a_run_of_some_stages_carries_nothing(file: Path, build) -> None:
    from dataclasses import replace

    moved = build.case(CASE, Verdict.CHANGED, base={"ttgir.dot": 1}, head={"ttgir.dot": 2})
    same = histories.run("3.7.0", "3.8.0", build.case(CASE, Verdict.UNCHANGED))
    put(
        file,
        histories.run("3.8.0", "3.9.0", moved),
        replace(same, options=replace(same.options, stages=("ptx",))),
    )
    assert ("3.7.0", "ttgir.dot") not in facts(file)


def test_what_was_measured_on_its_own_stays(file: Path, build) -> None:
    with database.writing(file) as history:
        found = histories.inventory(histories.made(CASE, registers=10, spills=3))
        add.add_inventory(history, histories.version("3.8.0"), "all", found)
        add.add_inventory(history, histories.version("3.8.0"), "all", found)
    case = build.case(CASE, Verdict.CHANGED, base={"registers": 99}, head={"registers": 12})
    put(file, histories.run("3.8.0", "3.9.0", case))
    assert facts(file)["3.8.0", "registers"] == (10, "measured")
    assert facts(file)["3.9.0", "registers"] == (12, "measured")
    with database.reading(file) as history:
        assert history.rows("SELECT cases, wall_s, cpu_s FROM inventories") == [(1, 10.0, 8.0)]
        costs = history.rows("SELECT version, stage, cpu_s FROM stage_costs ORDER BY ALL")
    assert costs == [
        ("triton==3.8.0", "ptx", 0.125),
        ("triton==3.8.0", "ttir", 0.25),
        ("triton==3.9.0", "ttir", None),
    ]


def test_a_failed_writer_leaves_everything_as_it_was(file: Path, build) -> None:
    put(file, histories.run("3.8.0", "3.9.0", build.case(CASE, Verdict.CHANGED)))
    before = counts(file)
    with pytest.raises(ZeroDivisionError), database.writing(file) as history:
        add.add_run(history, histories.run("3.7.0", "3.8.0", build.case(CASE, Verdict.CHANGED)), None)
        raise ZeroDivisionError
    assert counts(file) == before


def test_what_is_no_history_is_said(tmp_path: Path) -> None:
    absent, text, other = tmp_path / "absent", tmp_path / "text", tmp_path / "other"
    with pytest.raises(HistoryError, match="there is no history"), database.reading(absent):
        pass
    text.write_text("not a database")
    with pytest.raises(HistoryError, match="no history that can be opened"), database.writing(text):
        pass
    import duckdb

    with duckdb.connect(str(other)) as connection:
        connection.execute("CREATE TABLE mine (x INTEGER)")
    with pytest.raises(HistoryError, match="has schema 'None'"), database.writing(other):
        pass
    with duckdb.connect(str(other)) as connection:
        assert connection.execute("SELECT table_name FROM duckdb_tables()").fetchall() == [("mine",)]
