"""Which tests launch something that changed, and what keeps a test from being called unchanged."""

from dataclasses import replace
from pathlib import Path

import pytest

from irdiff.gate import tests_answer
from irdiff.model import RuntimeEdit, Sides, TestStatus, Verdict
from irdiff.resolve import test_cases
from irdiff.resolve.recorded_tests import RecordedTest, Recording, TestLaunch
from tests.unit.runs import case, run, target

ADD = TestLaunch(recording="a" * 32, kernel="add", text="grid 1")
MUL = TestLaunch(recording="b" * 32, kernel="mul", text="grid 1")
TEST = RecordedTest(
    name="tests/test_ops.py::test_add[1]",
    outcome="passed",
    reason="",
    calls=1,
    launches=(ADD,),
    errors=(),
    reads=(),
    doubts=(),
    read=(),
    seconds=0.1,
)


def identity(test):
    """Here a dtype's number is that of the other side plus one."""
    return test.name.replace("[dtype0]", "[fp32]").replace("[dtype1]", "[fp32]")


def recording(*tests, files=None):
    """files: {path: digest} of what every test read."""
    rows = {identity(test): replace(test, read=tuple(files or ())) for test in tests}
    made = Recording(folder=Path("/recorded"), tests=rows, uncollected={}, tree=Path("/tree"))
    vars(made)["files"] = files or {}
    return made


def answered(base, head, verdict=Verdict.UNCHANGED, **changes):
    """The answer of a comparison whose cases all have a verdict, each launch of the tests being one."""
    found = test_cases.paired(Sides(base=base, head=head), target(), 1)
    cases = [case(f"{launch_id}@sm_90", verdict) for launch_id in found.pairs]
    return tests_answer.answer(replace(run(*cases), **changes), [found])


def test_a_test_whose_launches_are_all_the_same_is_unchanged():
    found = answered(recording(TEST), recording(TEST))
    assert found.names(TestStatus.UNCHANGED) == (TEST.name,)
    assert (found.changed_cases, found.cases, found.collected) == (0, 1, 1)


def test_ir_only_ir_is_no_change_of_what_runs():
    found = answered(recording(TEST), recording(TEST), Verdict.IR_ONLY)
    assert found.names(TestStatus.UNCHANGED) == (TEST.name,)


@pytest.mark.parametrize("verdict", [Verdict.CHANGED, Verdict.BROKEN, Verdict.FIXED])
def test_changed_code_changes_its_tests_even_those_that_were_not_followed(verdict):
    doubtful = replace(TEST, doubts=("reads a value after a launch",))
    found = answered(recording(doubtful), recording(doubtful), verdict)
    assert found.names(TestStatus.CHANGED) == (TEST.name,)


@pytest.mark.parametrize(
    "change",
    [
        {"launches": (replace(ADD, text="grid 2"),)},
        {"launches": (ADD, MUL)},
        {"reads": (("a" * 32, "ptx", "other text"),)},
        {"errors": ("CompilationError: at 1:1",)},
    ],
)
def test_what_only_one_side_does_changes_a_test(change):
    verdict = Verdict.ADDED if len(change.get("launches", ())) == 2 else Verdict.UNCHANGED
    found = answered(recording(TEST), recording(replace(TEST, **change)), verdict)
    assert found.names(TestStatus.CHANGED) == (TEST.name,)


@pytest.mark.parametrize(
    ("verdict", "stage", "status", "reason"),
    [
        (Verdict.UNCHANGED, "ttgir", TestStatus.UNCHANGED, ""),
        (Verdict.IR_ONLY, "ttgir", TestStatus.CHANGED, "looks at ttgir that changed"),
        (
            Verdict.UNCHANGED,
            "ptx",
            TestStatus.NOT_KNOWN,
            "looks at ptx, whose text is not the same on both sides",
        ),
        (
            Verdict.UNCHANGED,
            "amdgcn",
            TestStatus.NOT_KNOWN,
            "looks at amdgcn, whose text is not the same on both sides",
        ),
    ],
    ids=["the same", "other code that runs alike", "equivalent", "not compared"],
)
def test_code_that_a_test_asserts_on_is_compared_as_its_stage_is(verdict, stage, status, reason):
    reader = replace(TEST, reads=((ADD.recording, stage, ""),))
    (test,) = answered(recording(reader), recording(reader), verdict).tests
    assert (test.status, test.reason) == (status, reason)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"outcome": "failed", "reason": "IndexError"}, "failed here: IndexError"),
        ({"outcome": "died", "reason": "signal 11"}, "died here: signal 11"),
        ({"doubts": ("starts another Python process",)}, "starts another Python process"),
        ({"launches": ()}, "without a launch here"),
    ],
)
@pytest.mark.parametrize("side", ["base", "head", "both"])
def test_a_test_that_was_not_wholly_followed_is_not_known(change, reason, side):
    other = replace(TEST, **change)
    if side != "both" and "launches" in change:
        return  # it launches something on one side alone: it is changed
    base, head = (other if side in (name, "both") else TEST for name in ("base", "head"))
    (test,) = answered(recording(base), recording(head)).tests
    assert (test.status, test.reason) == (TestStatus.NOT_KNOWN, reason)


def test_a_test_whose_kernels_the_frontend_rejects_alike_is_unchanged():
    rejected = replace(TEST, launches=(), errors=("CompilationError: at 1:1",))
    (test,) = answered(recording(rejected), recording(rejected)).tests
    assert (test.status, test.reason) == (TestStatus.UNCHANGED, "")


@pytest.mark.parametrize("verdict", [Verdict.FAILING, Verdict.UNSUPPORTED])
def test_a_launch_that_does_not_compile_makes_its_test_not_known(verdict):
    (test,) = answered(recording(TEST), recording(TEST), verdict).tests
    assert test.status is TestStatus.NOT_KNOWN
    assert test.reason.startswith("a launch does not compile: tests/tests_test_ops:test_add-add-")


def test_a_launch_that_is_no_case_makes_its_test_not_known():
    found = test_cases.paired(Sides(base=recording(TEST), head=recording(TEST)), target(), 1)
    (test,) = tests_answer.answer(run(), [found]).tests
    assert (test.status, test.reason) == (TestStatus.NOT_KNOWN, "a launch was not compared")


def test_a_runtime_that_differs_leaves_no_test_unchanged():
    edit = RuntimeEdit(path="triton/runtime/jit.py", diff=())
    (test,) = answered(recording(TEST), recording(TEST), runtime=(edit,)).tests
    assert (test.status, test.reason) == (
        TestStatus.NOT_KNOWN,
        "the runtime differs: triton/runtime/jit.py",
    )


@pytest.mark.parametrize("file", ["tests/test_ops.py", "conftest.py", "tests/shapes.json"])
def test_a_test_whose_files_differ_is_not_known(file):
    base, head = recording(TEST, files={file: "1"}), recording(TEST, files={file: "2"})
    (test,) = answered(base, head).tests
    assert (test.status, test.reason) == (
        TestStatus.NOT_KNOWN,
        f"it reads {file}, which differs",
    )


@pytest.mark.parametrize(("file", "status"), [("tests/w.bin", "not known"), ("tests/x.bin", "unchanged")])
def test_a_test_whose_source_names_a_file_that_differs_is_not_known(file, status, tmp_path):
    """C++ may read it, which Python does not see."""
    sides = []
    for side in ("base", "head"):
        tree = tmp_path / side
        (tree / "tests").mkdir(parents=True)
        (tree / "tests" / "test_ops.py").write_text('torch.from_file("tests/w.bin")')
        (tree / file).write_text(side)
        test = replace(TEST, read=("tests/test_ops.py",))
        sides.append(Recording(folder=Path("/recorded"), tests={TEST.name: test}, uncollected={}, tree=tree))
    (test,) = answered(*sides).tests
    assert test.status == status
    assert not test.reason or test.reason.startswith(f"it may read {file}, which differs")


def test_a_test_of_one_side_is_not_known_where_its_launches_are_those_of_others():
    renamed = replace(TEST, name="tests/test_ops.py::test_sum[1]")
    found = answered(recording(TEST), recording(renamed))
    assert found.cases == 1
    assert {test.name: test.reason for test in found.tests} == {
        TEST.name: "head has no such test",
        renamed.name: "base has no such test",
    }


def test_a_test_whose_parameters_moved_goes_by_its_name_on_head():
    base, head = (replace(TEST, name=f"tests/test_ops.py::test_add[dtype{number}]") for number in (0, 1))
    (test,) = answered(recording(base), recording(head)).tests
    assert (test.name, test.status) == (head.name, TestStatus.UNCHANGED)


def test_a_test_that_head_lacks_is_not_among_those_to_run():
    found = answered(recording(TEST), recording(), Verdict.REMOVED)
    (test,) = found.tests
    assert (test.status, test.reason) == (TestStatus.NOT_KNOWN, "head has no such test")
    assert found.names(TestStatus.CHANGED) == ()
