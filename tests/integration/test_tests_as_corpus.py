"""`irdiff compare --tests`: what the tests of a repository launch, and which of them a change can touch."""

import json

import pytest

from tests.programs import edited_toolchain
from tests.programs.checkouts import commit, new_repository, write
from tests.texts import text_of

TOML = """\
[kernels]
program = ["pytest"]
targets = ["sm_90"]
toolchain = "triton==3.9.0"
packages = ["cloudpickle", "numpy", "pytest", "torch==2.13.0"]
"""
TESTS = text_of("pytest/test_ops.py")
NEW = "from test_ops import launch_scale\n\n\ndef test_new():\n    launch_scale()\n"
SUMS = """
import torch
import triton
import triton.language as tl


@triton.jit
def sums(x, out, BLOCK: tl.constexpr):
    tl.store(out, tl.sum(tl.load(x + tl.arange(0, BLOCK))))


def test_sums():
    x = torch.ones(256, device="cuda")
    assert "st.global" in sums[(1,)](x, x, 256).asm["ptx"]
"""
HIDDEN = ("assigned", "added", "through_numpy", "of_numpy", "launched_again", "differentiated")
NOT_KNOWN = {
    "test_reads_a_value": "reads a value after a launch",
    "test_reads_an_array": "reads a value after a launch",
    **{f"test_reads_what_a_kernel_reaches[{name}]": "reads a value after a launch" for name in HIDDEN},
    **{f"test_reads_without_a_name[<lambda>{n}]": "reads a value after a launch" for n in (0, 1)},
    "test_reads_figures": "asks a kernel that is not compiled for n_regs",
    "test_sets_a_variable": "sets DISABLE_LLVM_OPT",
    "test_starts_python": "starts another Python process",
    **{f"test_spawns_python[{number}]": "starts another Python process" for number in (1, 2)},
    "test_fails": "failed here: RuntimeError: no such thing",
    "test_is_skipped": "skipped here: Skipped: not here",
    "test_ends_its_process": "died here: its process ended: exit code 3",
    "test_waits_for_nothing": "died here: it only waited for 10 seconds",
    "test_compiles_for_another_gpu": "compiles for another GPU: 80",
}


@pytest.fixture
def repository(tmp_path):
    repo = new_repository(tmp_path / "kernels")
    write(repo, {"irdiff.toml": TOML, "tests/test_ops.py": TESTS})
    commit(repo, "Tests")
    return repo


def statuses(folder):
    """{name of a test: (status, reason)}"""
    rows = json.loads((folder / "run.json").read_text())["tests"]["tests"]
    return {row["name"].partition("::")[2]: (row["status"], row["reason"]) for row in rows}


@pytest.mark.wide
def test_a_change_of_the_compiler_changes_the_tests_that_launch_other_code(irdiff, repository, tmp_path):
    """Without fusion `add` is another text and the same machine code; with 8 warps all code is other code."""
    changed, unchanged = tmp_path / "changed.txt", tmp_path / "unchanged.txt"
    sides = ("triton==3.9.0", "triton==3.9.0+TRITON_DEFAULT_FP_FUSION=0")
    words = ("--tests", "tests", "--no-recheck", "--no-attribute", "--out", str(tmp_path / "same"))
    files = ("--tests-changed", str(changed), "--tests-unchanged", str(unchanged))
    done = irdiff("compare", *sides, *words, *files, cwd=repository)
    assert done.run is not None, done.stderr
    found = statuses(tmp_path / "same")
    names = {name for name, (status, _) in found.items() if status == "unchanged"}
    assert names == {
        *("test_add[dtype0]", "test_add[dtype1]", "test_scale", "test_reads_before_a_launch"),
        "test_reads_what_no_kernel_reaches",
        *("test_launches_a_kernel_again", "test_expects_an_error", "test_after_that"),
        *("test_launches_a_file_of_ir", "test_expects_an_error_of_a_file"),
        "test_overrides_a_stage",
    }
    not_known = {name: reason for name, (status, reason) in found.items() if status == "not known"}
    assert not_known.keys() == NOT_KNOWN.keys()
    assert [name for name, start in NOT_KNOWN.items() if not not_known[name].startswith(start)] == []
    readers = ("test_asserts_on_a_part_of_code", "test_asserts_on_code", "test_reads_code")
    assert changed.read_text() == "".join(f"tests/test_ops.py::{name}\n" for name in readers)
    assert {found[name] for name in readers} == {("changed", "looks at ptx that changed")}
    assert set(unchanged.read_text().splitlines()) == {f"tests/test_ops.py::{name}" for name in names}
    assert "0 of 5 specializations changed; they are launched by 3 of 34 tests" in done.stdout
    assert "11 tests launch only unchanged code" in done.stdout

    sides = ("triton==3.9.0", "triton==3.9.0+num_warps=8")
    words = ("--tests", "tests", "--no-recheck", "--no-attribute", "--out", str(tmp_path / "other"))
    irdiff("compare", *sides, *words, cwd=repository)
    found = statuses(tmp_path / "other")
    # an option of a side is one of the launches of `kernel[grid]`
    assert {name for name, (status, _) in found.items() if status == "unchanged"} == {
        "test_launches_a_file_of_ir"
    }
    assert {found[name][0] for name in names - {"test_launches_a_file_of_ir"}} == {"changed"}


@pytest.mark.wide
def test_a_test_whose_file_changed_is_not_said_to_be_unchanged(irdiff, repository, tmp_path):
    write(repository, {"tests/test_ops.py": TESTS.replace("n=1000", "n=1400"), "README": "new\n"})
    commit(repository, "Larger")
    words = ("--tests", "tests/test_ops.py", "--sample", "26", "--no-recheck", "--no-attribute")
    done = irdiff("compare", "HEAD~1", "HEAD", *words, "--out", str(tmp_path / "run"), cwd=repository)
    assert done.run is not None, done.stderr
    found = statuses(tmp_path / "run")
    assert len(found) == 26  # of each function one
    assert "unchanged" not in {status for status, _ in found.values()}
    assert found["test_scale"] == ("not known", "it reads tests/test_ops.py, which differs")
    (added,) = (answer for name, answer in found.items() if name.startswith("test_add["))
    assert added == ("changed", "passes other grids or arguments to its launches")


@pytest.mark.wide
def test_launches_of_a_renamed_test_and_of_moved_parameters_are_found_again(irdiff, repository, tmp_path):
    sizes = '@pytest.mark.parametrize("n", [1000, 1400])\ndef test_sizes(n):\n    launch_add(n)\n\n\n'
    moved = sizes.replace("[1000, 1400]", "[520, 1400, 1000]")
    dtypes = '@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])\ndef test_dtypes(dtype):\n'
    dtypes += "    launch_add(dtype=dtype)\n"
    more = dtypes.replace("[torch", "[torch.bfloat16, torch")
    write(repository, {"tests/test_ops.py": TESTS.replace("def test_add(", "def test_sum(") + sizes + dtypes})
    commit(repository, "Sizes")
    write(repository, {"tests/test_ops.py": TESTS + moved + more})
    commit(repository, "Moved")
    words = ("--tests", "tests", "--no-recheck", "--no-attribute", "--out", str(tmp_path / "run"))
    done = irdiff("compare", "HEAD~1", "HEAD", *words, cwd=repository)
    assert done.verdicts() == {"unchanged": 5, "added": 1}, done.stderr
    assert {case["kernel"] for case in done.run["cases"]} == {"add", "fill", "scale"}
    found = statuses(tmp_path / "run")
    of_dtypes = [found[f"test_dtypes[dtype{number}]"] for number in range(3)]  # bfloat16, and those of base
    assert [status for status, _ in of_dtypes] == ["changed", "not known", "not known"]
    assert {reason for _, reason in of_dtypes[1:]} == {"it reads tests/test_ops.py, which differs"}
    assert {found[f"test_sizes[{n}]"][0] for n in (1000, 1400)} == {"not known"}  # their file differs
    reasons = {found[f"{name}[dtype{n}]"][1] for name in ("test_add", "test_sum") for n in (0, 1)}
    assert reasons == {"base has no such test", "head has no such test"}


@pytest.mark.wide
def test_a_recording_is_a_corpus_of_its_own(irdiff, repository, tmp_path):
    out = tmp_path / "recorded"
    words = ("--toolchain", "triton==3.9.0", "--tests", "tests", "--target", "sm_90", "--out", str(out))
    done = irdiff("capture", *words, cwd=repository)
    assert done.code == 0, done.stderr
    assert "34 tests (27 passed, 4 failed, 2 died, 1 skipped), 14 wholly followed; " in done.stdout
    tests = {row["name"].partition("::")[2]: row for row in json.loads((out / "tests.json").read_text())}
    assert tests["test_fails"]["launches"] == tests["test_scale"]["launches"] != []
    assert [len(tests[name]["launches"]) for name in ("test_asserts_on_code", "test_reads_code")] == [2, 2]
    given = {name: [text != "" for _, _, text in row["reads"]] for name, row in tests.items()}
    assert given["test_reads_code"] == given["test_asserts_on_a_part_of_code"] == [True]
    assert given["test_asserts_on_code"] == [False, False]  # nothing is compiled for it
    errors = tests["test_expects_an_error"]["errors"]
    assert errors[0].startswith("CompileTimeAssertionFailure")
    assert errors[1].endswith("slice object at 0x>")  # its address is another in each process

    words = ("--corpus", str(out), "--target", "sm_90", "--no-recheck", "--no-attribute")
    compared = irdiff("compare", "triton==3.9.0", "triton==3.9.0", *words)
    assert compared.verdicts() == {"unchanged": 5}
    assert {case["kernel"] for case in compared.run["cases"]} == {"add", "fill", "scale"}


@pytest.mark.wide
def test_the_place_of_a_toolchain_is_no_part_of_the_code_that_a_test_looks_at(
    irdiff, newest, repository, tmp_path
):
    """The kernel calls a function of Triton's own, whose file the PTX names."""
    write(repository, {"tests/test_sums.py": SUMS})
    commit(repository, "Sums")
    head = edited_toolchain.make(newest, tmp_path / "copy", edited_toolchain.AMD_EDIT)
    words = ("--tests", "tests/test_sums.py", "--no-recheck", "--no-attribute")
    done = irdiff("compare", newest.spec, head, *words, "--out", str(tmp_path / "run"), cwd=repository)
    assert done.run is not None, done.stderr
    assert statuses(tmp_path / "run") == {"test_sums": ("unchanged", "")}


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("nowhere.py", "pytest finds no test in nowhere.py"),
        (
            "tests/test_absent.py",
            "pytest cannot collect tests/test_absent.py: ModuleNotFoundError: No module",
        ),
    ],
)
def test_tests_that_are_not_there_are_told_from_those_whose_packages_are_not(irdiff, repository, path, said):
    write(repository, {"tests/test_absent.py": "import no_such_package\n"})
    commit(repository, "Absent")
    done = irdiff("compare", "HEAD~1", "HEAD", "--tests", path, cwd=repository)
    assert (done.code, said in done.stderr) == (2, True), done.stderr


@pytest.mark.wide
def test_a_file_of_tests_that_base_lacks_is_run(irdiff, repository, tmp_path):
    write(repository, {"tests/test_new.py": NEW})
    commit(repository, "New")
    words = ("--tests", "tests/test_new.py", "--no-recheck", "--no-attribute")
    done = irdiff("compare", "HEAD~1", "HEAD", *words, "--out", str(tmp_path / "run"), cwd=repository)
    assert done.verdicts() == {"added": 1}, done.stderr
    ((name, (status, _)),) = statuses(tmp_path / "run").items()
    assert (name, status) == ("test_new", "changed")
