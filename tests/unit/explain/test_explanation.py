"""Which toolchains and files the commands of an explained case take."""

import json
import shlex
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from irdiff.errors import IrdiffError, RunFolderError, UsageError
from irdiff.explain import explanation
from irdiff.model import Sides, Verdict
from irdiff.run import run_folder
from irdiff.store import Store
from tests.unit import runs

CASE = "matmul/tma:fp16@sm_90"


@pytest.fixture
def folder(tmp_path):
    """A run of one case with the texts that enter its first changed stage."""
    store = Store(tmp_path / "store")
    texts = Sides(base="base", head="head").map(lambda name: {"ttir": b"entering", "ttgir": f"of {name}"})
    artifacts = texts.map(lambda row: runs.kept(store, row))
    case = runs.case(CASE, Verdict.CHANGED, artifacts=artifacts)
    digests = {row.digest for each in artifacts for row in each.values()}
    run_folder.write(tmp_path / "run", runs.run(case), store, digests)
    return tmp_path / "run"


@pytest.fixture
def run(folder):
    return run_folder.load(folder)


@pytest.fixture
def case(run):
    return run.cases[0]


def test_only_the_toolchains_of_the_run_are_taken_for_its_sides(run, case, tmp_path, monkeypatch):
    asked = []

    def installed(base, head, *_):
        asked.append((base, head))
        made = Sides(base=(runs.side("base"), run.base.digest), head=(runs.side("head"), run.head.digest))
        return made.map(lambda row: replace(row[0], toolchain=replace(row[0].toolchain, digest=row[1])))

    monkeypatch.setattr(explanation, "resolve_sides", installed)
    config = SimpleNamespace(shipped=Path("/shipped"), toolchains=tmp_path)
    explanation.sides_again(run, case, None, config)
    assert asked == [(run.base.spec, run.head.spec)]
    for name in ("base", "head"):
        other = replace(run, **{name: replace(getattr(run, name), digest="0" * 64)})
        with pytest.raises(IrdiffError, match=f"^{name}: triton==.* is not the toolchain"):
            explanation.sides_again(other, case, None, config)
    of_commit = replace(run, head=replace(run.head, spec="my/branch (36bea00190)"))
    with pytest.raises(IrdiffError, match=r"my/branch \(36bea00190\)"):
        explanation.sides_again(of_commit, case, None, config)
    (tmp_path / "commit-1234").mkdir()
    state = {"spec": "my/branch (36bea00190)", "version": "3.9.0", "digest": run.head.digest}
    (tmp_path / "commit-1234" / "irdiff.json").write_text(json.dumps(state))
    explanation.sides_again(of_commit, case, None, config)
    assert asked[-1][1] == f"python:{tmp_path}/commit-1234/bin/python", "a branch may have moved since"
    elsewhere = replace(case, workload="mine/adds")
    with pytest.raises(IrdiffError, match="base: /other has no mine/adds, so") as error:
        explanation.sides_again(run, elsewhere, Path("/other"), config)
    assert "--corpus DIR" in error.value.hint


def test_each_side_is_compiled_alone_from_what_enters_the_stage(run, case, snapshot):
    found = []
    for stage in ("ttir", "ttgir", "amdgcn", "sass", "launch", None):
        origin = runs.origin(stage) if stage else None
        for row in explanation.reproduction(run, replace(case, origin=origin)):
            compile(shlex.split(row.command("/a b/python"))[3], "command", "exec")
            found.append(f"{stage}: {row.side} {row.file} {row.command('/a b/python')}")
    assert "\n".join(found) == snapshot


def test_a_side_is_compiled_alone_with_the_options_of_its_launch(folder, run, case, tmp_path):
    key = case.launches.head
    options = {"num_warps": "8", "arch": "sm90", "maxnreg": "None", "enable_fp_fusion": "False"}
    options |= {"default_dot_input_precision": "tf32", "supported_fp8_dtypes": "(fp8e5)"}
    run = replace(run, launches={**run.launches, key: replace(run.launches[key], options=options)})
    _, head = explanation.reproduction(run, case)
    assert 'target=gpu, options=json.load(open("head.options.json")))' in head.code
    explanation.save(folder, run, case, tmp_path)
    written = json.loads((tmp_path / "head.options.json").read_text())
    assert written == {"num_warps": 8, "enable_fp_fusion": False, "default_dot_input_precision": "tf32"}


def test_files_of_the_commands_are_written_twice_but_never_over_an_edited_one(folder, run, case, tmp_path):
    out = tmp_path / "deep" / "out"
    for _ in range(2):
        files = explanation.save(folder, run, case, out)
        assert {path.name: path.read_bytes() for path in files} == dict.fromkeys(
            ["base.ttir", "head.ttir"], b"entering"
        )
    (out / "base.ttir").unlink()
    (out / "head.ttir").write_text("edited")
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "base.ttir").symlink_to(out / "head.ttir")
    (tmp_path / "folder" / "base.ttir").mkdir(parents=True)
    for place in (out, tmp_path / "linked", tmp_path / "folder"):
        with pytest.raises(UsageError, match="nothing was written"):
            explanation.save(folder, run, case, place)
    assert [path.read_text() for path in out.iterdir()] == ["edited"]
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot be written"):
        explanation.save(folder, run, case, tmp_path / "file" / "out")
    one_sided = replace(case, artifacts=Sides(base=case.artifacts.base, head={}))
    assert explanation.save(folder, run, one_sided, tmp_path / "one") == [tmp_path / "one/base.ttir"]
    with pytest.raises(RunFolderError, match=r"base\.ttir or head\.ttir"):
        explanation.save(folder, run, replace(case, artifacts=Sides(base={}, head={})), tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_lines_that_launch_a_kernel_are_those_of_changed_files_first(tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "ops.py").write_text("def f(x):\n    scale[(1,)](x)\n    rescale[(1,)](x)\n")
    (tmp_path / "run.py").write_text("scale [grid](x)  # a launch\n")
    assert explanation.launching_lines("scale", tmp_path, ["src/ops.py"]) == ["src/ops.py:2: scale[(1,)](x)"]
    assert len(explanation.launching_lines("scale", tmp_path, ["README.md"])) == 2


def test_lines_of_another_kernel_whose_equal_ir_was_compiled_once_are_left_out(tmp_path):
    (tmp_path / "k.py").write_text("y = helper(x)\n")
    (tmp_path / "helper.py").write_text("return x * 3\n")
    raw = '#loc1 = loc("{0}helper.py":1:1)\n#loc2 = loc("{0}k.py":1:1)\nx loc(callsite(#loc1 at #loc2))\n'
    shown = ["{0}helper.py:1: return x * 3, called at {0}k.py:1: y = helper(x)"]
    for prefix in ("", f"{tmp_path}/"):
        words = [each.format(prefix) for each in shown]
        text = raw.format(prefix)
        assert explanation.source_lines(text, [3], tmp_path, {"k.py", "helper.py"}) == words
        assert explanation.source_lines(text, [3], tmp_path, {"other_k.py", "helper.py"}) == []
