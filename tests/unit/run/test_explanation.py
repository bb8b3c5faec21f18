"""What only the toolchains of a run can still say of a case, and what its files say without them."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from irdiff.attribute.replayer import Replay, Replayed
from irdiff.capture import kernel_sources
from irdiff.errors import IrdiffError, RunFolderError, UsageError
from irdiff.model import Artifact, Case, Origin, Run, Sides, StageStatus, Verdict
from irdiff.resolve.corpus import Corpus
from irdiff.run import explanation, run_folder
from irdiff.store import Store

CASE = "matmul/tma:fp16@sm_90"
RAW = """#loc = loc("k.py":1:0)
module {
  tt.func @k() {
    ttg.a loc(#loc2)
    ttg.b loc(#loc3)
    tt.return loc(#loc)
  } loc(#loc)
} loc(#loc)
#loc2 = loc("matmul/k.py":2:3)
#loc3 = loc("gone.py":1:3)
"""


@pytest.fixture
def folder(tmp_path: Path, build: Any) -> Path:
    """A run of one case with the texts that enter its first changed stage."""
    run_folder.write(tmp_path / "run", *written(tmp_path, build))
    return tmp_path / "run"


def written(tmp_path: Path, build: Any) -> tuple[Run, Store, list[str]]:
    store = Store(tmp_path / "store")
    sides = []
    for side in ("base", "head"):
        texts = {"ttir": b"entering", "ttgir": f"text of {side}".encode()}
        rows = [
            Artifact(stage=name, digest=store.put(text), size_bytes=len(text)) for name, text in texts.items()
        ]
        sides.append({row.stage: row for row in rows})
    case = build.case(CASE, Verdict.CHANGED, artifacts=Sides(base=sides[0], head=sides[1]))
    return build.run(case), store, sorted({row.digest for side in sides for row in side.values()})


def of(folder: Path) -> tuple[Run, Case]:
    run = run_folder.load(folder)
    return run, run.cases[0]


# the toolchains


def resolved(monkeypatch: pytest.MonkeyPatch, sides: Sides[Any]) -> list[Any]:
    asked: list[Any] = []

    def resolve(base: str, head: str, wanted: Any, config: Any) -> Sides[Any]:
        asked.append((base, head, wanted))
        return sides

    monkeypatch.setattr(explanation, "resolve_sides", resolve)
    return asked


def with_digests(build: Any, base: str, head: str) -> Sides[Any]:
    def side(name: str, digest: str) -> Any:
        made = build.side(name)
        return replace(made, toolchain=replace(made.toolchain, digest=digest))

    return Sides(base=side("base", base), head=side("head", head))


def test_the_sides_of_a_run_are_resolved_again_without_building(
    folder: Path, build: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, case = of(folder)
    sides = with_digests(build, run.base.digest, run.head.digest)
    asked = resolved(monkeypatch, sides)
    config: Any = SimpleNamespace(shipped=Path("/shipped"))
    assert explanation.sides_again(run, case, None, config, print) is sides
    base, head, wanted = asked[0]
    assert (base, head, wanted.build, wanted.corpus) == (
        run.base.spec,
        run.head.spec,
        False,
        Path("/shipped/corpus"),
    )


@pytest.mark.parametrize("other", ["base", "head"])
def test_another_toolchain_of_the_same_name_is_refused(
    folder: Path, build: Any, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    run, case = of(folder)
    digests = {"base": run.base.digest, "head": run.head.digest, other: "0" * 64}
    resolved(monkeypatch, with_digests(build, digests["base"], digests["head"]))
    config: Any = SimpleNamespace(shipped=Path("/shipped"))
    with pytest.raises(IrdiffError, match=f"^{other}: triton==.* is not the toolchain"):
        explanation.sides_again(run, case, None, config, print)


def test_a_compiler_of_a_revision_is_found_by_its_digest(
    folder: Path, build: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run, case = of(folder)
    run = replace(run, head=replace(run.head, spec="my/branch (36bea00190)"))
    asked = resolved(monkeypatch, with_digests(build, run.base.digest, run.head.digest))
    config: Any = SimpleNamespace(shipped=Path("/shipped"), toolchains=tmp_path)
    with pytest.raises(IrdiffError, match=r"of my/branch \(36bea00190\) is not installed any more"):
        explanation.sides_again(run, case, None, config, print)
    made = tmp_path / "commit-1234"
    made.mkdir()
    state = {"spec": "my/branch (36bea00190)", "version": "3.9.0", "digest": run.head.digest}
    (made / "irdiff.json").write_text(json.dumps(state))
    explanation.sides_again(run, case, None, config, print)
    assert asked[0][:2] == (run.base.spec, f"python:{made}/bin/python"), "a branch may have moved since"


# the attribution


class FakeReplayer:
    """A stage that cannot be run alone."""

    asked: list[Replay]

    def __init__(self, _: Any) -> None:
        FakeReplayer.asked = []

    def run(self, replay: Replay) -> Replayed:
        FakeReplayer.asked.append(replay)
        return Replayed(output=None, error="not here", settings={})


def test_a_case_is_attributed_with_the_texts_of_its_run(
    folder: Path, tmp_path: Path, build: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, case = of(folder)
    case = replace(case, stages={"ttir": StageStatus.IDENTICAL, "ttgir": StageStatus.CHANGED})
    monkeypatch.setattr(explanation, "Replayer", FakeReplayer)
    config: Any = SimpleNamespace(store=tmp_path / "empty", cache=tmp_path, jobs=1, compiler_environment={})
    found = explanation.attribute(run, folder, case, with_digests(build, "b", "h"), config)
    assert found is not None
    assert "base cannot run the stage alone: not here" in found.origin.note
    assert Store(tmp_path / "empty").get(FakeReplayer.asked[0].input_digest) == b"entering"


def test_a_case_whose_code_did_not_change_has_no_cause(folder: Path, tmp_path: Path, build: Any) -> None:
    run, case = of(folder)
    config: Any = SimpleNamespace(store=tmp_path / "empty", cache=tmp_path, jobs=1, compiler_environment={})
    same = replace(case, verdict=Verdict.UNCHANGED)
    assert explanation.attribute(run, folder, same, with_digests(build, "b", "h"), config) is None


# the kernel's lines


def test_lines_of_the_kernel_are_told_once_and_in_order(tmp_path: Path) -> None:
    (tmp_path / "matmul").mkdir()
    (tmp_path / "matmul/k.py").write_text("one\n    two  \n")
    assert explanation.source_lines(RAW, [4, 5, 4, 2], tmp_path) == ["matmul/k.py:2: two", "gone.py:1: "]
    (tmp_path / "matmul/k.py").write_text("one\n")
    assert explanation.source_lines(RAW, [4], tmp_path) == ["matmul/k.py:2: "]
    (tmp_path / "matmul/k.py").write_bytes(b"\xff\n\xfe")
    assert explanation.source_lines(RAW, [4], tmp_path) == ["matmul/k.py:2: "]


def test_the_line_of_a_helper_names_its_caller(tmp_path: Path) -> None:
    (tmp_path / "h.py").write_text("return x * 2\n")
    (tmp_path / "k.py").write_text("y = double(x)\n")
    raw = 'x loc(callsite("h.py":1:1 at "k.py":1:1))\n'
    assert explanation.source_lines(raw, [1], tmp_path) == [
        "h.py:1: return x * 2, called at k.py:1: y = double(x)"
    ]


def test_each_side_of_a_repository_has_its_own_files(folder: Path, tmp_path: Path) -> None:
    run, _ = of(folder)
    revision = tmp_path / "export"
    revision.mkdir()
    config: Any = SimpleNamespace(cache=tmp_path / "cache", shipped=tmp_path / "shipped")
    kept = Corpus(root=tmp_path / "copy of this process", workloads=(), digest="a" * 64, kept=revision)
    for corpus in (kept, kept, replace(kept, digest="b" * 64, kept=None)):
        kernel_sources.keep_root(corpus, config)
    run = replace(run, base=replace(run.base, corpus="a" * 64), head=replace(run.head, corpus="b" * 64))
    roots = explanation.corpus_roots(run, None, config)
    assert tuple(roots) == (revision, tmp_path / "shipped" / "corpus")
    assert kernel_sources.root_of("..", config) is None, "a run folder may be forged"
    revision.rmdir()
    assert explanation.corpus_roots(run, tmp_path, config).base == tmp_path


# one side alone


@pytest.mark.parametrize(
    ("stage", "entering", "wanted"),
    [
        ("ttir", "ttir", "ttir"),
        ("ttgir", "ttir", "ttgir"),
        ("llir", "ttgir", "llir"),
        ("ptx", "llir", "ptx"),
        ("amdgcn", "llir", "amdgcn"),
        ("sass", "ptx", "cubin"),
        ("launch", "ttgir", "cubin"),
        (None, "ttir", "ttgir"),
    ],
)
def test_each_side_is_compiled_alone_from_what_enters_the_stage(
    build: Any, stage: str | None, entering: str, wanted: str
) -> None:
    origin = Origin(stage=stage, pass_name=None, masked=(), charged=(), note="") if stage else None
    case = build.case(CASE, Verdict.CHANGED, origin=origin)
    rows = explanation.reproduction(build.run(case), case)
    assert [(row.side, row.file) for row in rows] == [
        ("base", f"base.{entering}"),
        ("head", f"head.{entering}"),
    ]
    for row in rows:
        variable, python, option, code = shlex.split(row.command("/a b/python"))
        assert (variable, python, option) == ("TRITON_ALWAYS_COMPILE=1", "/a b/python", "-c")
        compile(code, "command", "exec")
        assert f'"{row.file}"' in code
        assert f'.asm["{wanted}"]' in code
        assert 'GPUTarget("cuda", 90, 32)' in code


def test_the_files_that_the_commands_name_are_written(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "deep" / "out"
    names = ["base.ttir", "head.ttir"]
    assert explanation.save(folder, *of(folder), out) == [out / name for name in names]
    assert {path.name: path.read_bytes() for path in out.iterdir()} == dict.fromkeys(names, b"entering")
    assert explanation.save(folder, *of(folder), out) == [out / name for name in names]


def test_a_file_that_somebody_edited_is_not_overwritten(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "head.ttir").write_text("edited")
    with pytest.raises(UsageError, match="nothing was written"):
        explanation.save(folder, *of(folder), tmp_path)
    assert not (tmp_path / "base.ttir").exists()
    assert (tmp_path / "head.ttir").read_text() == "edited"


@pytest.mark.parametrize("kind", ["link", "folder"])
def test_what_is_no_file_is_not_written_through(folder: Path, tmp_path: Path, kind: str) -> None:
    if kind == "link":
        (tmp_path / "elsewhere").write_bytes(b"entering")
        (tmp_path / "base.ttir").symlink_to(tmp_path / "elsewhere")
    else:
        (tmp_path / "base.ttir").mkdir()
    with pytest.raises(UsageError, match="nothing was written"):
        explanation.save(folder, *of(folder), tmp_path)


def test_a_place_that_cannot_be_written_is_told(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot be written"):
        explanation.save(folder, *of(folder), tmp_path / "file" / "out")


def test_a_stage_of_which_the_run_has_no_text_is_left_out(folder: Path, tmp_path: Path, build: Any) -> None:
    run, case = of(folder)
    one_sided = replace(case, artifacts=Sides(base=case.artifacts.base, head={}))
    assert explanation.save(folder, run, one_sided, tmp_path / "out") == [tmp_path / "out/base.ttir"]


def test_where_there_is_nothing_to_save_no_folder_is_made(folder: Path, tmp_path: Path) -> None:
    run, case = of(folder)
    without = replace(case, artifacts=Sides(base={}, head={}))
    assert explanation.held(folder, run, without) == {}
    with pytest.raises(RunFolderError, match=r"holds no base\.ttir or head\.ttir of this case"):
        explanation.save(folder, run, without, tmp_path / "out")
    assert not (tmp_path / "out").exists()
