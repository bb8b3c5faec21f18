"""The tables of a history, one DuckDB file.

A *version* is one side of a comparison as its run names it: a release, a nightly wheel, a commit. Versions of
one kind form a *series*, which `sort_key` orders as text. A *fact* is a number with its unit in its
name; facts of a version come from compiling it (`measured`) or from a neighbour whose machine code is the
same (`carried`). What depends on where it was measured (compile time, timings) is never carried.
"""

from __future__ import annotations

from collections.abc import Mapping

SCHEMA = "irdiff-history/1"

TABLES: Mapping[str, str] = {
    "meta": "name VARCHAR NOT NULL, value VARCHAR NOT NULL",
    "versions": """version VARCHAR NOT NULL, series VARCHAR NOT NULL, sort_key VARCHAR NOT NULL,
        label VARCHAR NOT NULL, toolchain VARCHAR NOT NULL, corpus VARCHAR NOT NULL""",
    "cases": """case_id VARCHAR NOT NULL, workload VARCHAR NOT NULL, kernel VARCHAR NOT NULL,
        target VARCHAR NOT NULL, tier VARCHAR NOT NULL""",
    # of one version
    "inventories": """version VARCHAR NOT NULL, selection VARCHAR NOT NULL, cases INTEGER NOT NULL,
        wall_s DOUBLE NOT NULL, cpu_s DOUBLE NOT NULL, compiled INTEGER NOT NULL""",
    "compilations": """version VARCHAR NOT NULL, case_id VARCHAR NOT NULL, outcome VARCHAR NOT NULL,
        message VARCHAR""",
    "stage_costs": """version VARCHAR NOT NULL, case_id VARCHAR NOT NULL, stage VARCHAR NOT NULL,
        wall_s DOUBLE, cpu_s DOUBLE""",
    "facts": """version VARCHAR NOT NULL, case_id VARCHAR NOT NULL, fact VARCHAR NOT NULL,
        value DOUBLE NOT NULL, origin VARCHAR NOT NULL""",
    # of two neighbours
    "runs": """run VARCHAR NOT NULL, created VARCHAR NOT NULL, base VARCHAR NOT NULL, head VARCHAR NOT NULL,
        selection VARCHAR NOT NULL, whole BOOLEAN NOT NULL, compared INTEGER NOT NULL,
        changed INTEGER NOT NULL, duration_s DOUBLE NOT NULL, place VARCHAR NOT NULL""",
    "verdicts": """run VARCHAR NOT NULL, case_id VARCHAR NOT NULL, verdict VARCHAR NOT NULL,
        origin_stage VARCHAR, pass_name VARCHAR, group_id VARCHAR, nondeterministic VARCHAR NOT NULL""",
    "groups": """run VARCHAR NOT NULL, group_id VARCHAR NOT NULL, title VARCHAR NOT NULL,
        severity VARCHAR NOT NULL, score DOUBLE NOT NULL, origin_stage VARCHAR NOT NULL, pass_name VARCHAR,
        charged VARCHAR NOT NULL, representative VARCHAR NOT NULL, members INTEGER NOT NULL""",
    # of one session on one GPU
    "sessions": """session VARCHAR NOT NULL, created VARCHAR NOT NULL, gpu VARCHAR NOT NULL,
        gpu_name VARCHAR NOT NULL, target VARCHAR NOT NULL, driver VARCHAR NOT NULL,
        reference VARCHAR NOT NULL, sm_clock_mhz DOUBLE, memory_clock_mhz DOUBLE, temperature_c DOUBLE,
        power_w DOUBLE,
        throttled VARCHAR NOT NULL, trustworthy BOOLEAN NOT NULL, processes INTEGER NOT NULL""",
    "timings": """session VARCHAR NOT NULL, version VARCHAR NOT NULL, case_id VARCHAR NOT NULL,
        median_us DOUBLE NOT NULL, ratio DOUBLE NOT NULL, ratio_low DOUBLE NOT NULL,
        ratio_high DOUBLE NOT NULL, noise_floor DOUBLE NOT NULL, outputs VARCHAR NOT NULL""",
}
"""Columns by table, in the order in which rows are written."""

KEYS: Mapping[str, tuple[str, ...]] = {
    "meta": ("name",),
    "versions": ("version",),
    "cases": ("case_id",),
    "inventories": ("version", "selection"),
    "compilations": ("version", "case_id"),
    "stage_costs": ("version", "case_id"),
    "facts": ("version", "case_id"),
    "runs": ("run",),
    "verdicts": ("run",),
    "groups": ("run",),
    "sessions": ("session",),
    "timings": ("session",),
}
"""What new rows replace: all rows of a table with the same values in these columns."""

NOT_CARRIED = frozenset({"binary_bytes"})
"""Facts that may differ where the machine code is the same: names and debug information are in the file."""


def columns(table: str) -> tuple[str, ...]:
    """The names of a table's columns."""
    return tuple(part.split()[0] for part in TABLES[table].replace("\n", " ").split(","))
