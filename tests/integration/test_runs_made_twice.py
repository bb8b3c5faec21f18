"""Each kind of run is made twice in one cache, and every command that takes a run reads the second."""

import json
import re
import zipfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from irdiff.cli import cli
from irdiff.errors import IrdiffError
from irdiff.model import Toolchain
from irdiff.run import run_folder
from tests import dask_machines
from tests.integration.conftest import Result
from tests.programs import edited_toolchain
from tests.programs.checkouts import PLAN, SQUARE, commit, edit, new_repository, write
from tests.texts import text_of
from tests.unit.golden import golden

OLD, NEW = "triton==3.8.0", "triton==3.9.0"
ADD = ("--case", "elementwise/vector_add:fp32-16m", "--target", "gfx942")
BOTH = (*ADD, "--target", "sm_90")
EQUAL_TWICE = ("id", "verdict", "stages", "origin", "group", "facts", "metadata", "launches", "edit")
FAILS = text_of("runs_made_twice/fails.py.template")
IR = text_of("runs_made_twice/ir.ttir")
ADDED = "%result = arith.addf %value, %value"
FOLDED = "%one = arith.constant dense<1.0> : tensor<128xf32>\n    %same = arith.mulf %value, %one : tensor<128xf32>\n"
PROGRAM = text_of("runs_made_twice/program.py")


@dataclass(kw_only=True)
class Place:
    """Where runs are made, and what they are made of."""

    folder: Path
    newest: Toolchain
    previous: Toolchain
    irdiff: Callable[..., Result]
    ending: ExitStack

    def edited(self, name, *appended):
        files = dict.fromkeys(edited_toolchain.AMD_EDIT, "".join(appended))
        return edited_toolchain.make(self.newest, self.folder / name, files)

    def failing(self, name):
        return self.edited(name, FAILS.replace("{name}", name))

    def ir(self, name, text=IR):
        path = self.folder / f"{name}.ttir"
        path.write_text(text)
        return str(path)

    def repository(self):
        repo = new_repository(self.folder / "kernels")
        write(repo, {**SQUARE, "irdiff.toml": PLAN, "program.py": PROGRAM})
        commit(repo, "Kernels")
        edit(repo, "mykernels.py", "x * x", "x * x + 1.0")
        commit(repo, "Another function")
        return repo

    def ptxas(self, side):
        return "ptxas:" + next(path for path in side.programs if path.endswith("/ptxas-blackwell"))

    def cluster(self):
        made = dask_machines.machines(self.folder / "dask", workers=1)
        return self.ending.enter_context(made).url

    def compared(self, *words):
        """For what stands in the cache after it."""
        done = self.irdiff("compare", *words)
        assert done.run is not None, done.stderr


def _after(words, then):
    return lambda place: (place.compared(*words), then(place))[1]


def _ir(head):
    return lambda place: (
        *(place.ir("base"), place.ir("head", head), "--ir", "--triton", NEW, "--target", "sm_90"),
    )


def _repository(*more):
    return lambda place: (*("HEAD~1", "HEAD", "--repo", str(place.repository()), "--target", "sm_90", *more),)


KINDS = {
    # a comparison as a user types it, and the verdict that all its cases have
    "same compiler": (lambda _: (NEW, NEW, *ADD), "unchanged"),
    "all unchanged, base from the cache": (
        _after((OLD, NEW, *ADD), lambda place: (NEW, place.edited("edited", "\n_NEW = 1\n"), *ADD)),
        "unchanged",
    ),
    "broken": (lambda place: (NEW, place.failing("head"), *ADD), "broken"),
    "fixed": (lambda place: (place.failing("base"), NEW, *ADD), "fixed"),
    "failing": (lambda place: (place.failing("base"), place.failing("head"), *ADD), "failing"),
    "IR files that change": (_ir(IR.replace(ADDED, ADDED.replace("addf", "mulf"))), "changed"),
    "IR files of which all is ir-only": (
        _ir(IR.replace(ADDED, f"{FOLDED}    {ADDED.replace('%value,', '%same,')}")),
        "ir-only",
    ),
    "kernel repository": (_repository(), "changed"),
    "program": (_repository("--program", "program.py"), "changed"),
    "assemblers": (
        lambda place: (
            *(place.ptxas(place.previous), place.ptxas(place.newest), "--from", NEW),
            *("--case", "elementwise/vector_add:fp32-16m", "--target", "sm_100"),
        ),
        "unchanged",
    ),
    "cluster": (lambda place: (OLD, NEW, *ADD, "--cluster", place.cluster()), "changed"),
    "merged": (lambda _: (OLD, NEW, *BOTH), "changed"),
}


@pytest.fixture
def place(tmp_path, newest, previous, irdiff):
    with ExitStack() as ending:
        yield Place(folder=tmp_path, newest=newest, previous=previous, irdiff=irdiff, ending=ending)


@pytest.fixture(autouse=True)
def _own_cache(cache, monkeypatch):
    monkeypatch.setenv("IRDIFF_CACHE", str(cache))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")


NARROW = ("broken", "IR files of which all is ir-only", "kernel repository")


@pytest.mark.parametrize(
    "kind", [kind if kind in NARROW else pytest.param(kind, marks=pytest.mark.wide) for kind in KINDS]
)
def test_a_run_made_twice(kind, place):
    words, verdict = KINDS[kind][0](place), KINDS[kind][1]
    runs = []
    for name in ("first", "second"):
        make(words, place, place.folder / name, shards=2 if kind == "merged" else 1)
        runs.append(json.loads(run_folder.dump(run_folder.load(place.folder / name))))
    read_by_all(place.folder / "second")
    first, second = runs
    assert {case["verdict"] for case in first["cases"]} == {verdict}
    for one, other in zip(first["cases"], second["cases"], strict=True):
        assert {name: one[name] for name in EQUAL_TWICE} == {name: other[name] for name in EQUAL_TWICE}
    assert first["groups"] == second["groups"]


def make(words, place, folder, shards):
    parts = [(f"{folder}-{n}", ("--shard", f"{n}/{shards}")) for n in range(1, shards + 1)]
    for out, shard in parts if shards > 1 else [(str(folder), ())]:
        done = place.irdiff("compare", *words, *shard, "--out", out)
        assert done.run is not None, done.stderr
    if shards > 1:
        called("merge", *(out for out, _ in parts), "--out", str(folder))


READERS = golden("readers")["reader"]
"""Every command that takes a run, and what it may say (a pattern) where it refuses one that is valid."""


def read_by_all(run):
    out = run.with_name(f"{run.name}-out")
    out.mkdir()
    with zipfile.ZipFile(out / "run.zip", "w") as archive:
        for path in run.rglob("*"):
            archive.write(path, path.relative_to(run))
    names = {"RUN": str(run), "CASE": run_folder.load(run).cases[0].id}
    for row in READERS:
        words = (names.get(word, word.replace("OUT", str(out))) for word in row["words"].split())
        called(*words, refusal=row.get("refusal", ""))


def called(*words, refusal=""):
    done = CliRunner().invoke(cli, words, standalone_mode=False)
    if done.exception is None:
        assert done.return_value in (0, None) or words[0] == "gate", (words, done.output)
    else:
        assert refusal, (words, done.exception)
        assert isinstance(done.exception, IrdiffError), (words, done.exception)
        assert re.search(refusal, str(done.exception)), (words, done.exception)
