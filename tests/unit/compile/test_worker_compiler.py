"""What results are filed under, which are not kept, and which are not taken."""

import contextlib
import itertools
import json
import shutil
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Barrier

import pytest

from irdiff.compile.worker_compiler import WorkerCompiler
from irdiff.model import EVERY_LAUNCH, Assembler, Compiled, Failed, FailureKind, Launch
from irdiff.resolve.corpus import Corpus, Packages
from irdiff.resolve.sides import Side
from irdiff.store import Store
from tests.unit import runs
from tests.unit.golden import golden
from tests.unit.requests import COMPILED, FakeRequests

TOOLCHAIN = replace(runs.side("one").toolchain, programs={"/t/ptxas": "p"})
TARGET = runs.target()


@dataclass
class Compilation:
    """One launch of a corpus, and how often a worker compiles it."""

    requests: FakeRequests
    store: Store
    launch: Launch

    def compiler(self, *, reuse=True):
        return WorkerCompiler(self.requests, self.store, EVERY_LAUNCH, reuse=reuse)

    def words(self, **changes):
        corpus = Corpus(root=Path("/corpus"), workloads=("a/b",), digest="d")
        plain = {"toolchain": TOOLCHAIN, "corpus": corpus, "launch": self.launch, "target": TARGET, **changes}
        side = Side(toolchain=plain.pop("toolchain"), corpus=plain.pop("corpus"), note="")
        return (side, *plain.values())

    def compile(self, *, reuse=True, **changes):
        return self.compiler(reuse=reuse).compile(*self.words(**changes))

    def recompile(self, attempt):
        return self.compiler().compile(*self.words(), attempt=attempt)

    def asked(self, *calls):
        """How many requests each call makes."""
        counts = [len(self.requests.rows)]
        for call in calls:
            call()
            counts.append(len(self.requests.rows))
        return [after - before for before, after in itertools.pairwise(counts)]


@pytest.fixture
def case(tmp_path, requests, launch):
    return Compilation(requests, Store(tmp_path / "store"), launch)


def test_equal_inputs_under_equal_toolchains_are_compiled_once(case):
    case.requests.result = {**COMPILED, "assembler_flags": ["/t/ptxas", "-v"]}
    first = case.compile()
    assert first.assembler == Assembler(digest="p", flags=("-v",))
    assert (first.launcher_args, first.metadata) == (COMPILED["launcher_args"], COMPILED["metadata"])
    compiler = case.compiler()
    for taken in (1, 2):
        assert compiler.compile(*case.words(launch=replace(case.launch, id="a/b:other"))) == first
        assert compiler.taken_from_store == taken
    assert len(case.requests.rows) == 1


PACKAGES = Packages(site=Path("/s"), imports=("torch",), kernels=(), torch_compile=True, digest="torch")
BESIDE = Corpus(root=Path("/corpus"), workloads=("a/b",), digest="d", packages={"a": PACKAGES})


@pytest.mark.parametrize(
    ("given", "again"),
    [
        ({"toolchain": replace(TOOLCHAIN, digest="two")}, 0),
        ({"launch": runs.launch("a/b:c@sm_90", digest="of another launch")}, 0),
        ({"launch": runs.launch("a/b:c@sm_90", digest=None)}, 1),
        ({"corpus": BESIDE}, 0),
        ({"environment_digest": "of another worker"}, 0),
        ({"reuse": False}, 1),
    ],
)
def test_anything_else_is_compiled(case, given, again):
    """`environment_digest` is of the worker's own code and the environment that it runs in."""
    case.compile()
    case.requests.environment_digest = given.pop("environment_digest", "environment")
    assert case.asked(lambda: case.compile(**given), lambda: case.compile(**given)) == [1, again]


def test_a_compilation_in_another_process_is_filed_by_its_attempt(case):
    case.compile()
    attempts = [lambda n=n: case.recompile(n) for n in (0, 1, 0, 1)]
    assert case.asked(*attempts) == [1, 1, 0, 0]
    assert [row["randomized"] for row in case.requests.rows] == [False, True, True]


def test_launches_of_one_input_digest_are_compiled_once_whatever_workload_they_are_of(case):
    """At the same moment too: the second one waits for the first."""
    compiler, begun = case.compiler(), Barrier(4)

    def one(number):
        other = replace(case.launch, id=f"c/d:{number}", workload="c/d")
        begun.wait()
        return compiler.compile(*case.words(launch=other))

    with ThreadPoolExecutor(4) as pool:
        outcomes = list(pool.map(one, range(4)))
    assert (len(case.requests.rows), compiler.taken_from_store) == (1, 3)
    assert outcomes == [outcomes[0]] * 4


@pytest.mark.parametrize("row", golden("kept")["compiled"], ids=str)
def test_failures_that_say_nothing_of_the_compiler_are_not_kept(case, row):
    case.requests.result = {**COMPILED, **row["result"]} if "result" in row else None
    if failed := row.get("failed"):
        case.requests.failed = FailureKind(failed[0]), failed[1]
    assert isinstance(case.compile(), Failed if failed else Compiled)
    assert case.asked(case.compile) == [0 if row["kept"] else 1]


def test_the_dead_leave_what_they_had_finished(case):
    case.requests.result = None
    case.requests.files = {"ttir": b"t", "notes.txt": b"no stage", "stages": b"ttir\nttgir\n"}
    made = case.compile()
    assert (set(made.artifacts), made.stage_times_s) == ({"ttir"}, {})


def test_a_result_holds_while_the_files_that_its_stages_opened_have_the_same_content(case, tmp_path):
    outside, root = tmp_path / "conf.txt", tmp_path / "root"
    root.mkdir()
    (root / "tuned.json").write_text("1")
    opened = [["r", str(outside)], ["r", str(root / "tuned.json")], ["r", str(root / "not_there")]]
    case.requests.files = {
        **case.requests.files,
        "opened": "".join(f"{json.dumps(row)}\n" for row in opened).encode(),
    }
    words = {"corpus": Corpus(root=root, workloads=("a/b",), digest="d")}

    def asks(change=lambda: None):
        change()
        return case.asked(lambda: case.compile(**words)) == [1]

    assert asks() and not asks()
    assert asks(lambda: outside.write_text("0")) and not asks(), "it was not there"
    assert asks(lambda: outside.write_text("1"))
    assert asks((root / "not_there").touch)
    other = tmp_path / "other"
    shutil.copytree(root, other)
    words["corpus"] = replace(words["corpus"], root=other)
    assert not asks(), "another side has the same files"
    assert asks(lambda: (other / "tuned.json").write_text("2"))
    case.requests.files["opened"] += json.dumps(["w", str(outside)]).encode() + b"\n"
    assert asks(lambda: outside.write_text("2")) and asks(), "what a stage reads and writes has no digest"


def lose_artifact(store, made):
    store.object_path(made.artifacts["ttgir"].digest).unlink()


def damage_record(store, _):
    (path,) = store.root.glob("records-*.sqlite3")
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        changed = connection.execute("UPDATE records SET value = substr(value, 2) WHERE kind = 'compiled'")
        assert changed.rowcount == 1


@pytest.mark.parametrize("damage", [lose_artifact, damage_record])
def test_what_is_damaged_counts_as_absent(case, damage):
    compiled = case.compile()
    damage(case.store, compiled)
    assert case.asked(case.compile, case.compile) == [1, 0]
    assert case.compile() == compiled


def test_an_artifact_that_is_found_damaged_is_made_anew(case):
    digest = case.compile().artifacts["ttgir"].digest
    case.store.object_path(digest).write_bytes(b"damaged, and not empty")
    assert case.asked(case.compile, lambda: case.store.get(digest), case.compile) == [0, 0, 1]
    assert case.store.get(digest) == b"module {}"
