"""The main job on real compilers, and on a third-party backend outside of Triton's tree."""

import json
import sqlite3
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import jsonschema
import pytest

import irdiff as api
from irdiff.run import run_folder
from irdiff.store import Store
from tests.programs import edited_toolchain
from tests.texts import text_of

OLD, NEW = "triton==3.8.0", "triton==3.9.0"
SCHEMA = Path(__file__).parents[2] / "reports" / "run.schema.json"
FENCE = "matmul/pointer:fp16-4096@sm_90"


def test_two_releases(irdiff, tmp_path):
    words = ("compare", OLD, NEW, "--case", "elementwise/vector_add:fp32-odd", "--case", FENCE)
    first = irdiff(*words, "--out", str(tmp_path / "run"))
    assert first.code == 0, first.stderr
    assert {case["target"] for case in first.run["cases"]} == {"sm_90", "sm_100", "gfx942", "gfx950"}
    fence = first.case(FENCE)
    assert fence["verdict"] == "changed"
    assert fence["origin"]["stage"] == "llir"  # the fence that a pass of TTGIR inserts has no effect
    assert fence["facts"]["base"]["registers"] > 0
    assert fence["nondeterministic"] == []
    assert first.run["base"]["version"] == "3.8.0"

    again = irdiff(*words, "--out", str(tmp_path / "run"), cwd=tmp_path)
    assert again.run["cases"] == first.run["cases"], "the store changes nothing but the time"

    run = api.load_run(tmp_path / "run")
    assert [case.id for case in run.cases] == [case["id"] for case in first.run["cases"]]
    schema = json.loads(SCHEMA.read_text())
    jsonschema.validate(first.run, schema)
    assert schema == run_folder.json_schema(), "run `make schema`"

    shown = irdiff("diff", str(tmp_path / "run"), FENCE, "--stage", "ttgir")
    assert "+" in shown.stdout
    assert "fence_async_shared" in shown.stdout


def _remove_records(cache, condition):
    with closing(sqlite3.connect(cache / "results" / "records-1.sqlite3")) as records, records:
        records.execute(f"DELETE FROM records WHERE {condition}")


def test_judged_before_it_is_the_same_run_as_judged_anew(irdiff, cache, small_corpus):
    words = ("compare", OLD, NEW, "--corpus", str(small_corpus), "--target", "sm_90", "--case", "fp32")
    made, known = irdiff(*words), irdiff(*words)
    store = Store(cache / "results")
    assert len(store.keys("judged")) == len(made.run["cases"])
    # what a judgement rests on goes, so that nothing but judgements can answer
    _remove_records(cache, "kind NOT IN ('judged', 'compiled', 'catalog', 'determinism')")
    alone = irdiff(*words)
    _remove_records(cache, "kind = 'judged'")
    anew = irdiff(*words)
    for result in (made, known, alone, anew):
        for name in ("created", "duration_s", "environment", "command"):
            del result.run[name]
    assert made.run == known.run == alone.run == anew.run


@pytest.mark.parametrize(
    ("side", "code", "message"),
    [
        ("triton==99.0.0", 3, "cannot be installed"),
        ("python:/nowhere/python", 3, "not an executable"),
        (f"python:{sys.executable}", 3, "has no Triton"),
        ("3.9.0", 2, "is no revision"),
        ("wheel:/nowhere/triton.whl", 3, "no such file"),
    ],
)
def test_bad_sides_are_one_clear_error(irdiff, side, code, message):
    result = irdiff("compare", side, NEW)
    assert result.code == code
    assert message in result.stderr and "next: " in result.stderr
    assert "Traceback" not in result.stderr


def test_no_network_is_one_clear_error(irdiff, tmp_path):
    own = tmp_path / "empty"
    result = irdiff(
        "toolchain", "install", "triton==3.7.0", "--cache", str(own),
        UV_OFFLINE="1", UV_CACHE_DIR=str(own / "uv"),
    )  # fmt: skip
    assert result.code == 3
    assert "cannot be installed" in result.stderr
    assert not list(own.glob("toolchains/*/irdiff.json"))


def test_temporary_files_may_lie_on_another_disk(cache, irdiff):
    """As they do where /tmp is in memory: Triton's assembler writes there, and irdiff's scratch is in its cache."""
    memory = Path("/dev/shm")
    if not memory.is_dir() or memory.stat().st_dev == cache.stat().st_dev:
        pytest.skip("all folders are on one disk")
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        words = ("--no-cache", "--case", "elementwise/vector_add:fp32-odd", "--target", "sm_90")
        done = irdiff("compare", NEW, NEW, *words, TMPDIR=folder)
    assert done.run is not None, done.stderr
    assert {case["verdict"] for case in done.run["cases"]} == {"unchanged"}


TARGET = 'title = "Tiny"\nbackend = "tiny"\narch = "t1"\nwarp_size = 1\n'


def test_third_party_backend(irdiff, newest, tmp_path, small_corpus):
    for side, line, version in (("base", "x", "1"), ("head", "y", "2")):
        text = text_of("backend/compiler.py").replace("{LINE}", line).replace("{VERSION}", version)
        site = edited_toolchain.beside(newest, tmp_path / side)
        edited_toolchain.add_backend(site, "tiny", text, text_of("backend/driver.py"))
    base, head = (f"python:{tmp_path}/{side}/bin/python" for side in ("base", "head"))
    (tmp_path / "targets").mkdir()
    (tmp_path / "targets" / "tiny.toml").write_text(TARGET)
    folders = ("--corpus", str(small_corpus), "--targets-dir", str(tmp_path / "targets"))
    words = (*folders, "--target", "tiny")

    result = irdiff("compare", base, head, *words)
    assert result.code == 0, result.stderr
    assert result.verdicts() == {"changed": 3}
    case = result.run["cases"][0]
    assert case["stages"]["ttir"] in ("identical", "equivalent")
    assert case["origin"]["stage"] == "tinyasm"
    assert "generic-normalizer:tinyasm" in case["findings"]
    assert irdiff("compare", base, base, "--no-cache", *words).verdicts() == {"unchanged": 3}

    without = irdiff("compare", "triton==3.9.0", "triton==3.9.0", *words)
    assert without.code == 4 and "supports" in without.stderr
    mixed = irdiff("compare", "triton==3.9.0", "triton==3.9.0", *words, "--target", "sm_90")
    assert mixed.verdicts()["unsupported"] == 1
