"""Launches of tests become cases: one for each pair of recordings, whatever the tests are called."""

from dataclasses import replace
from pathlib import Path

from irdiff import config as configuration
from irdiff import process
from irdiff.model import Sides, Toolchain
from irdiff.resolve import recorded_tests, test_cases
from irdiff.resolve.recorded_tests import Collection, RecordedTest, Recording, TestLaunch, TestSession
from irdiff.resolve.toolchains import identity
from tests.unit.runs import blank, target


def test_of(name, *launches):
    made = tuple(TestLaunch(recording=digest, kernel=kernel, text="") for digest, kernel in launches)
    return blank(RecordedTest, name=f"tests/test_ops.py::{name}", outcome="passed", launches=made)


test_of.__test__ = False


def recording(*tests, folder="/recorded"):
    rows = {test.name: test for test in tests}
    return Recording(folder=Path(folder), tests=rows, uncollected={}, tree=Path("/tree"))


def paired(base, head):
    return test_cases.paired(Sides(base=recording(*base), head=recording(*head)), target(), 0)


def pairs_of(found, name):
    return [found.pairs[launch_id] for launch_id in found.cases[f"tests/test_ops.py::{name}"]]


def test_launches_of_one_test_are_paired_in_their_order():
    found = paired([test_of("a", ("1", "add"), ("2", "mul"))], [test_of("a", ("3", "add"), ("4", "mul"))])
    assert pairs_of(found, "a") == [("1", "3"), ("2", "4")]


def test_a_new_launch_moves_no_other():
    found = paired([test_of("a", ("1", "add"))], [test_of("a", ("0", "fill"), ("1", "add"))])
    assert pairs_of(found, "a") == [(None, "0"), ("1", "1")]


def test_tests_of_which_nothing_is_recorded_say_why():
    doubt = "sets subprocess.run, which the compiler may read, before a launch"
    tests = [replace(test_of(name), doubts=(doubt,)) for name in ("a", "b")]
    failed = replace(test_of("c"), outcome="failed", reason="RuntimeError: no such thing")
    error = test_cases.nothing_recorded([paired([*tests, failed], [*tests, failed])])
    assert f"no launch of 3 tests could be recorded; most often: {doubt}\n" in str(error)


def test_what_tests_launch_is_kept_for_this_code_of_the_worker(tmp_path, monkeypatch):
    worker = tmp_path / "worker"
    (worker / "capture").mkdir(parents=True)
    for name in ("__main__.py", "capture/noted.py"):
        (worker / name).write_text("")
    monkeypatch.setattr(identity, "WORKER", worker / "__main__.py")
    runs = []

    def run_logged(command, *, log, env):
        runs.append(command)
        (log.parent / "collected.jsonl").write_text("")
        return 0

    monkeypatch.setattr(process, "run_logged", run_logged)
    session = blank(TestSession, toolchain=blank(Toolchain), tree=tmp_path)
    config = configuration.load(cache=tmp_path / "cache")
    for count in (1, 1, 2):
        if count == 2:
            (worker / "capture" / "noted.py").write_text("# what a worker captures is another thing now")
        recorded_tests.collected(session, target(), config)
        assert len(runs) == count


def test_two_tests_that_launch_the_same_share_a_case():
    tests = [test_of("a", ("1", "add")), test_of("b", ("1", "add"))]
    assert len(paired(tests, tests).pairs) == 1


def test_tests_that_were_alike_and_are_not_are_two_cases():
    found = paired(
        [test_of("a", ("1", "add")), test_of("b", ("1", "add"))],
        [test_of("a", ("2", "add")), test_of("b", ("3", "add"))],
    )
    assert (pairs_of(found, "a"), pairs_of(found, "b")) == ([("1", "2")], [("1", "3")])


def test_a_renamed_test_launches_the_cases_of_others():
    found = paired([test_of("a", ("1", "add"))], [test_of("a", ("2", "add")), test_of("new", ("2", "add"))])
    assert pairs_of(found, "new") == [("1", "2")]


def test_a_case_keeps_its_name_whatever_the_compiler_makes_of_it():
    first = paired([test_of("a[1]", ("1", "add"))], [test_of("a[1]", ("2", "add"))])
    second = paired([test_of("a[1]", ("8", "add"))], [test_of("a[1]", ("9", "add"))])
    assert [*first.pairs] == [*second.pairs]
    assert next(iter(first.pairs)).startswith("tests/tests_test_ops:a-add-")


def test_each_side_gets_its_own_corpus(tmp_path):
    (tmp_path / "base-recorded").mkdir()
    found = paired([test_of("a", ("1", "add"))], [test_of("a", ("2", "add"))])
    sides = Sides(
        base=replace(found.recordings.base, folder=tmp_path / "base-recorded"),
        head=found.recordings.head,
    )
    corpus = test_cases.corpus([replace(found, recordings=sides)], "base", tmp_path / "base")
    assert corpus.workloads == ("tests/tests_test_ops",)
    text = (tmp_path / "base/tests/tests_test_ops.py").read_text()
    assert "recorded(**{'sm_90': 'sm_90/1.json'})" in text
    assert (tmp_path / "base/sm_90").resolve() == tmp_path / "base-recorded"


def test_a_sample_takes_each_function_before_any_twice():
    names = [f"t.py::{function}[{number}]" for function in "abc" for number in range(100)]
    chosen = recorded_tests.sample(names, 3)
    assert {name.partition("[")[0] for name in chosen} == {"t.py::a", "t.py::b", "t.py::c"}


def test_a_sample_stays_when_a_function_gets_more_tests():
    names = [f"t.py::{function}[{number}]" for function in "abcdefgh" for number in range(50)]
    before = recorded_tests.sample(names, 40)
    after = recorded_tests.sample([*names, "t.py::a[more]"], 40)
    assert len({*before} - {*after}) <= 1
    assert [name for name in before if "::a" not in name] == [name for name in after if "::a" not in name]


def collections(base, head):
    return Sides(base=Collection(names=base, errors={}), head=Collection(names=head, errors={}))


def test_a_value_that_another_release_prints_in_other_words_leaves_its_test_to_its_name():
    base = {"t.py::a[Blocked(1)]": "t.py::a[layout0]", "t.py::a[fp16]": "t.py::a[dtype0]"}
    head = {"t.py::a[Blocked(1, cga=0)]": "t.py::a[layout0]", "t.py::a[fp16]": "t.py::a[dtype1]"}
    found = recorded_tests.matched(collections(base, head))
    assert found.base.names == {"t.py::a[layout0]": "t.py::a[layout0]", "t.py::a[fp16]": "t.py::a[dtype0]"}
    assert found.head.names == {"t.py::a[layout0]": "t.py::a[layout0]", "t.py::a[fp16]": "t.py::a[dtype1]"}


def test_a_parameter_that_is_new_takes_no_other_ones_test():
    base = {"t.py::a[fp16]": "t.py::a[dtype0]"}
    head = {"t.py::a[bf16]": "t.py::a[dtype0]", "t.py::a[fp16]": "t.py::a[dtype1]"}
    assert recorded_tests.matched(collections(base, head)) == collections(base, head)
