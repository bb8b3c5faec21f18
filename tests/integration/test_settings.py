"""Settings are part of a side: what a user sets on purpose reaches its compiler, its key and its name."""

from pathlib import Path

import pytest

from tests.texts import text_of

CASES = (
    "--case",
    "vector_add:fp16-16m",
    "--case",
    "normalization/layer_norm:backward-fp16-4k*",
    "--target",
    "sm_90",
)
BASE = "triton==3.9.0"


def cases_of(done):
    assert done.run is not None, done.stderr
    return {case["id"]: case for case in done.run["cases"]}


@pytest.mark.parametrize(
    ("setting", "verdicts"),
    [
        ("+TRITON_DEFAULT_FP_FUSION=1", {"unchanged"}),
        ("+num_warps=4", {"changed", "unchanged"}),
        ("+NVPTX_ENABLE_DUMP=0", {"unchanged"}),
        ("+ptx_version=84", {"unchanged"}),
        ("+num_stages=5", {"unchanged"}),
        ("+launch_pdl=true", {"changed"}),
        ("+DISABLE_PTXAS_OPT=1", {"changed"}),
    ],
)
def test_what_a_setting_does_is_compared(irdiff, setting, verdicts):
    done = irdiff("compare", BASE, setting, *CASES, "--no-attribute")
    found = {case["verdict"] for case in cases_of(done).values()}
    assert found and found <= verdicts
    assert done.run["base"]["spec"] == BASE and done.run["head"]["spec"] == BASE + setting
    assert done.run["base"]["digest"] != done.run["head"]["digest"]
    assert "nondeterministic" not in done.stdout


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("+TRITON_DEFAULT_FUSION=0", "TRITON_DEFAULT_FP_FUSION"),
        ("+num_warp=8", "num_warps"),
        ("+num_warps=many", "takes a whole number"),
        ("+TRITON_DEFAULT_FP_FUSION=perhaps", "takes 0 or 1"),
        ("+PYTHONHASHSEED=3", "irdiff sets PYTHONHASHSEED itself"),
        ("+num_warps", "has no value"),
        ("+num_warps=4+num_warps=8", "is set twice"),
    ],
)
def test_a_setting_that_a_release_does_not_know_is_refused(irdiff, setting, words):
    done = irdiff("compare", BASE, setting, *CASES)
    assert done.code == 2 and words in done.stderr


def test_what_lies_in_a_folder_that_a_setting_names_is_not_followed(irdiff, tmp_path):
    done = irdiff("compare", BASE, f"+TRITON_OVERRIDE_DIR={tmp_path}", *CASES, "--no-attribute")
    assert {case["verdict"] for case in cases_of(done).values()} == {"unchanged"}
    assert any("what is read where TRITON_OVERRIDE_DIR points to" in note for note in done.run["notes"])


def test_two_releases_run_a_program_of_a_folder_that_is_no_repository(irdiff, tmp_path):
    folder = tmp_path / "anywhere"
    folder.mkdir()
    (folder / "run.py").write_text(text_of("settings/program.py"))
    before = sorted(folder.rglob("*"))
    done = irdiff("compare", "triton==3.8.0", BASE, "--program", "run.py", "--target", "sm_90", cwd=folder)
    assert [case["kernel"] for case in cases_of(done).values()] == ["square"]
    assert sorted(folder.rglob("*")) == before


MUL, MAX, PACKED_MUL, PACKED_ADD = (
    b"\0v_mul_f32\0",
    b"\0v_max_f32\0",
    b"\0v_pk_mul_f32\0",
    b"\0v_pk_add_f32\0",
)


def test_another_codegen_library_is_a_side_and_is_charged(irdiff, tmp_path, newest):
    """A copy that prints other names of two instructions stands for another version of it."""
    own = Path(newest.root) / "backends/amd/lib/libtriton_amd_codegen.so"
    other = tmp_path / own.name
    other.write_bytes(own.read_bytes().replace(MUL, MAX).replace(PACKED_MUL, PACKED_ADD))
    folder = tmp_path / "program"
    folder.mkdir()
    (folder / "run.py").write_text(text_of("settings/program.py"))
    setting = f"+TRITON_AMD_CODEGEN_PATH={other}"
    done = irdiff("compare", BASE, setting, "--program", "run.py", "--target", "gfx942", cwd=folder)
    (case,) = cases_of(done).values()
    assert case["verdict"] == "changed" and case["origin"]["charged"] == ["codegen library"]
    assert "in the AMD codegen library" in done.stdout and setting in done.stdout.splitlines()[1]
