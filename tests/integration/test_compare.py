"""The main job on real compilers."""

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

pytestmark = pytest.mark.integration

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


def test_a_compiler_equals_itself(irdiff, tmp_path, small_corpus):
    """Compiled twice for every target, from another folder and with another hash seed: nothing changed."""
    words = ("--no-cache", "--corpus", str(small_corpus), "--case", "fp32-odd")
    result = irdiff("compare", NEW, NEW, *words, cwd=tmp_path, PYTHONHASHSEED="7")
    assert result.verdicts() == {"unchanged": 4}
    for case in result.run["cases"]:
        assert set(case["stages"].values()) <= {"identical", "equivalent"}, case
        assert len(case["stages"]) >= 4


def test_same_toolchain_compiles_nothing(irdiff, newest, small_corpus):
    """An interpreter that has the release is the release."""
    side = f"python:{newest.python}"
    words = ("--corpus", str(small_corpus), "--target", "sm_90", "--exit-code")
    result = irdiff("compare", NEW, side, *words)
    assert result.code == 0, result.stderr
    assert result.run["head"]["digest"] == result.run["base"]["digest"]
    assert result.verdicts() == {"unchanged": 3}
    for case in result.run["cases"]:
        assert case["stages"].pop("launch") == "identical"
        assert set(case["stages"].values()) == {"absent"}, "what was not compared is not called the same"
        assert case["findings"] == ["not-compiled:same-input"]


def test_a_workload_that_loads_at_base_only_is_broken(irdiff, tmp_path, small_corpus):
    (family,) = (path for path in small_corpus.iterdir() if path.is_dir())
    (workload,) = family.glob("*.py")
    text = workload.read_text()
    gone = 'import triton as _triton\nif _triton.__version__ == "3.9.0":\n    import a_module_that_is_gone\n'
    head, line, rest = text.partition("\nimport triton\n")
    workload.write_text(head + line + gone + rest)
    result = irdiff("compare", OLD, NEW, "--corpus", str(small_corpus), "--target", "sm_90", "--exit-code")
    assert result.verdicts() == {"broken": 3}
    assert result.code == 1
    assert "3 of 3 kernels no longer compile" in result.stdout
    for case in result.run["cases"]:
        assert "a_module_that_is_gone" in case["error"]
        assert case["launches"]["base"] and not case["launches"]["head"]


def _remove_records(cache: Path, condition: str) -> None:
    with closing(sqlite3.connect(cache / "results" / "records-1.sqlite3")) as records, records:
        records.execute(f"DELETE FROM records WHERE {condition}")


def test_damaged_artifact_is_compiled_again(irdiff, cache, small_corpus):
    words = ("compare", OLD, NEW, "--corpus", str(small_corpus), "--target", "sm_90", "--no-recheck")
    first = irdiff(*words)
    _remove_records(cache, "kind NOT IN ('compiled', 'catalog')")
    for number, path in enumerate(sorted((cache / "results" / "blobs").rglob("*"))):
        if path.is_file():
            path.write_bytes(b"torn" if number % 2 else path.read_bytes()[:-5])
    again = irdiff(*words)
    assert again.code == 0, again.stderr
    assert again.verdicts() == first.verdicts()


def test_judged_before_it_is_the_same_run_as_judged_anew(irdiff, cache, small_corpus):
    words = ("compare", OLD, NEW, "--corpus", str(small_corpus), "--target", "sm_90", "--case", "fp32")
    made, known = irdiff(*words), irdiff(*words)
    store = Store(cache / "results")
    assert len(store.keys("judged")) == len(made.run["cases"])
    # what a judgement rests on goes, so that nothing but judgements can answer
    _remove_records(cache, "kind NOT IN ('judged', 'compiled', 'catalog', 'rechecked')")
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


def test_a_part_of_a_label_selects(irdiff, small_corpus):
    words = ("compare", NEW, NEW, "--corpus", str(small_corpus), "--target", "sm_90", "--case")
    result = irdiff(*words, "fp32")
    names = [case["id"] for case in result.run["cases"]]
    assert names == [name for name in names if ":fp32" in name] and 0 < len(names) < 3
    assert f"--case fp32 is a part of {names[0].partition('@')[0]}" in result.run["notes"][0]
    result = irdiff(*words, "fp23")
    assert result.code == 2 and "--case 'fp23' matches no case" in result.stderr
    assert "did you mean fp32" in result.stderr
    result = irdiff(*words, "no/such")
    assert result.code == 2 and "'no/such' matches no case" in result.stderr


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
