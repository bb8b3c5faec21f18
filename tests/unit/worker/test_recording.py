"""A program's launches become a corpus that launches the same again, with a Triton of one file."""

import importlib
import json
import sys

import numpy as np
import pytest

from irdiff.worker.record import written_files
from irdiff.worker.record.importable import Importable, only_defines
from tests.texts import text_of
from tests.unit.golden import golden
from tests.unit.worker.conftest import TARGET, InProcess

GOLDEN = golden("recording")
PROGRAM = text_of("recording/program.py")


class Recording(InProcess):
    def capture(self, *words):
        """The exit code, and what was written of it; the corpus is that of the worker."""
        seen = self.results / "seen.json"
        fixed = ("--no-gpu", "--target", json.dumps(TARGET), "--out", str(self.root))
        code = self.module("program").main([*fixed, "--json", str(seen), *words])
        return code, json.loads(seen.read_text()) if seen.exists() else {}


@pytest.fixture
def recording(load, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", sys.argv[:])
    made = Recording(tmp_path)
    (made.root / f"{made.name}.py").unlink()
    (tmp_path / "train.py").write_text(PROGRAM)
    (tmp_path / "train-kernels.py").write_text(PROGRAM)
    return made


def test_what_is_written_launches_the_same_again(recording, tmp_path, capsys):
    code, seen = recording.capture(str(tmp_path / "train.py"), "0 is no number")
    said = capsys.readouterr().err
    assert code == 1 and seen["ended"] == "SystemExit: 0 is no number" and seen["not_written"] == []
    assert "the program ended early: SystemExit" in said and "9 launches, 7 different, of 2 kernels" in said
    assert "next: irdiff compare triton==3.8.0" in said
    text = (recording.root / "train" / "scale.py").read_text()
    assert text.startswith('"""`scale`, recorded by `irdiff capture` from train.py')
    for part in (
        *("SCALE = 3\n", "def helper(value):", "from __future__ import annotations\n", "num_warps=8"),
        *('shared_1 = tensor((64,), "fp32", fill="zeros")', "shared_2.as_strided((2,), (1,), 4)"),
        *(f'RECORDED_FOR = "{TARGET["name"]}"\n', "strides=(1, 8)), "),
        "functools.partial(scale[(1, 1, 1)], flops=1)",
    ):
        assert part in text
    assert {"train/tuned:fp16-64x8#1", "train/tuned:fp16-64x8#2"} <= {row["id"] for row in seen["launches"]}
    launched = {}
    for recording.name in ("train/scale", "train/tuned"):
        launched.update((f"{recording.name}:{label}", row) for label, row in recording.launches().items())
    assert sorted(launched) == sorted(row["id"] for row in seen["launches"])
    for row in seen["launches"]:
        again = launched[row["id"]]
        for part in ("kernel", "signature", "constexprs", "attributes", "grid"):
            assert again[part] == row[part], (row["id"], part)
    readme = (recording.root / "README.md").read_text()
    assert "# Kernels of train.py" in readme and all(f"`{row['id']}`" in readme for row in seen["launches"])


def test_a_kernel_of_the_repository_is_imported(recording, tmp_path, monkeypatch):
    (tmp_path / "kernels.py").write_text(PROGRAM.partition("x, out =")[0])
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "run.py").write_text(
        "from kernels import tuned, scale\nfrom irdiff_corpus import tensor\n"
        "tuned[lambda meta: (256 // meta['BLOCK'],)](tensor((8,), 'fp16'), 64)\nscale[(1,)](*[tensor((1,), 'i8')] * 2, 1, 2)\n"
    )
    code, _ = recording.capture("--repo", str(tmp_path), str(tmp_path / "run.py"))
    text = (recording.root / "run" / "tuned.py").read_text()
    assert code == 0 and "from kernels import tuned\n" in text and "the kernel is imported" in text.lower()
    assert "grid_by(('BLOCK',), {(32,): (8, 1, 1), (64,): (4, 1, 1)})" in text
    assert "BLOCK=" not in text.partition("LAUNCHES")[2], "the autotuner gives it"
    recording.name = "run/tuned"
    assert [row["grid"] for row in recording.launches().values()] == [[8, 1, 1], [4, 1, 1]]


def test_a_copy_says_why_it_is_one(recording, tmp_path):
    recording.capture("--repo", str(tmp_path), str(tmp_path / "train-kernels.py"), "0")
    text = (recording.root / "train_kernels" / "scale.py").read_text()
    assert text.startswith('"""A COPY of `scale`') and "It could not be imported: " in text


def test_nothing_of_anybody_is_written_over(recording, tmp_path, capsys):
    program = str(tmp_path / "train.py")
    code_file = tmp_path / "code"
    assert recording.capture("--code-file", str(code_file), program, "")[0] == 1
    assert code_file.read_text() == "1"
    (tmp_path / "train.py").write_text(PROGRAM.replace("tuned[lambda", "0 and tuned[lambda"))
    assert recording.capture(program, "")[0] == 1, "its own files it replaces"
    assert "left of an earlier recording: train/tuned.py" in capsys.readouterr().err
    with (recording.root / "train" / "scale.py").open("a") as file:
        file.write("# made better\n")
    assert recording.capture(program, "")[0] == 2
    assert "train/scale.py: not written by `irdiff capture`, or changed since" in capsys.readouterr().err


@pytest.mark.parametrize(("text", "code", "said"), GOLDEN["ends"])
def test_a_program_that_launches_nothing(recording, tmp_path, capsys, text, code, said):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "needed_here.py").write_text("")
    (tmp_path / "train.py").write_text(text)
    ended, seen = recording.capture("--repo", str(tmp_path), str(tmp_path / "train.py"))
    assert (ended, seen["launches"]) == (code, [])
    printed = capsys.readouterr().err
    assert said in printed and "runpy" not in printed


def test_on_a_gpu_launches_go_on_and_each_is_recorded_once(recording):
    """The tiny compiler stands for the real one: what it returns goes back to the program."""
    record, intercept, driver = map(recording.module, ("record", "intercept", "stub_driver"))
    compiled = []
    intercept.real_compile = lambda src, **_: compiled.append(src) or src
    driver.answer_as(TARGET)
    scope = {}
    recorder = record.Recorder()
    path = recording.root / "program.py"
    path.write_text(PROGRAM.partition("for n in")[0] + text_of("recording/grids.py"))
    with recorder:
        exec(compile(path.read_text(), str(path), "exec"), scope)
    assert (len(compiled), recorder.count, len(scope["asked"])) == (4, 4, 2)
    found = recorder.launches.values()
    grids = [(row.function.fn.__name__, row.grid, row.constexprs["BLOCK"]) for row in found]
    assert grids == [("scale", [4, 1, 1], 32), ("tuned", [2, 1, 1], 64)]
    ((kernel, why),) = recorder.failures
    assert kernel == "scale" and why.startswith("ZeroDivisionError")


class Numbers(np.ndarray):
    """As much of a torch tensor of integers as tells its content."""

    def is_contiguous(self):
        return True

    def numel(self):
        return self.size

    def unique(self):
        return np.unique(self).view(Numbers)


def test_integers_are_described_by_what_they_look_like(load):
    up, content = [*range(300)], load("record")._content
    for values, fill in (
        *(([0] * 300, "zeros"), ([7] * 300, "const:7"), (up, "arange"), (up[::-1], "perm")),
        *(([first, *up[:-1]], "randint:0:299") for first in (0, 5)),
    ):
        found = [content(np.array(part).view(Numbers), "i32") for part in (values, values[:3])]
        assert found == [(fill, None), ("normal", values[:3])]


def test_which_files_a_recording_may_write_over(tmp_path):
    def strangers(folder=tmp_path, family="train"):
        return written_files.strangers(str(folder), family)

    assert strangers(tmp_path / "absent") == strangers() == []
    (tmp_path / "train").mkdir()
    names = ("README.md", "train/a.py", "train/b.py")
    for name in names:
        (tmp_path / name).write_text(written_files.signed(name, "what was recorded\n"))
    (tmp_path / "notes.txt").write_text("mine")
    assert strangers() == strangers(family="other") == []
    assert written_files.left(str(tmp_path), "train", ["train/a.py"]) == ["train/b.py"]
    for name in names:
        text = (tmp_path / name).read_text()
        for changed in ("# made better\n" + text, text + "What I saw.\n", "mine\n", "", text[:-1]):
            (tmp_path / name).write_text(changed)
            assert strangers() == [name]
            assert name not in written_files.left(str(tmp_path), "train", [])
        (tmp_path / name).write_text(text)
    (tmp_path / "file").write_text("mine")
    assert strangers(tmp_path / "file") == ["a file of this name"]
    (tmp_path / "linked").symlink_to(tmp_path / "train")
    assert strangers(family="linked") == ["linked"]
    (tmp_path / "README.md").rename(tmp_path / "moved.md")
    (tmp_path / "README.md").symlink_to("moved.md")
    assert strangers() == ["README.md"]


@pytest.fixture
def repository(tmp_path, monkeypatch):
    text = "def helper():\n    def inner(): pass\n    return inner\n\n\nother = helper\nhelper_2 = helper()\n"
    for name in ("src/pkg/__init__", "src/pkg/ops", "src/pkg/generated", ".venv/site-packages/theirs"):
        (tmp_path / f"{name}.py").parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.setattr(Importable, "_is_ignored", lambda self, inner: "generated" in inner)
    places = [str(tmp_path / "src"), str(tmp_path / ".venv/site-packages")]
    monkeypatch.setattr(sys, "path", [*places, *sys.path])
    yield tmp_path
    for name in [name for name in sys.modules if name in ("pkg", "theirs") or name.startswith("pkg.")]:
        del sys.modules[name]


def test_a_function_of_the_repository_is_imported(repository):
    found, ops = Importable(str(repository)), importlib.import_module("pkg.ops")
    assert found.module_of(ops.helper) == found.module_name(ops) == "pkg.ops"
    assert Importable().module_of(ops.helper) is Importable().module_name(ops) is None
    helper, ops.helper = ops.helper, None
    assert "helper means something else in ops.py" in str(found.why_not(helper))


@pytest.mark.parametrize(("module_name", "name", "why"), GOLDEN["copied"])
def test_anything_else_is_copied(repository, module_name, name, why):
    found = Importable(str(repository))
    value = getattr(importlib.import_module(module_name), name)
    assert why in str(found.why_not(value))
    assert found.module_of(value) is None


def test_programs_that_run_when_they_are_imported():
    for text, quiet in GOLDEN["defines"]:
        assert only_defines(text) is quiet
