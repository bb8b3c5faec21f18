"""Which launches read a changed file, through links of the repository too."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from irdiff.capture import changed_files
from irdiff.capture.catalogs import NOTHING
from irdiff.capture.pairing import CapturedWorkload
from irdiff.model import CaptureFailure, Failure, FailureKind, FileChange, Launch, Pair, Reach, Sides
from irdiff.resolve.corpus import Corpus


class Bench:
    """Two revisions of a repository, each exported to a `tree`."""

    def __init__(self, folder: Path, build: Any) -> None:
        self.folder = folder
        self.build = build
        self.contents: dict[str, dict[str, str]] = {"base": {}, "head": {}}
        self.pairs: list[Pair] = []
        self.captured: list[CapturedWorkload] = []

    def file(self, path: str, base: str | None = None, head: str | None = None) -> Bench:
        for side, text in (("base", base), ("head", head)):
            if text is not None:
                place = self.folder / side / "tree" / path
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text(text)
                self.contents[side][path] = text
        return self

    def link(self, name: str, path: str) -> Bench:
        """A workload of both revisions that is a link to another file of the repository."""
        for side in ("base", "head"):
            place = self.folder / side / "tree" / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(self.folder / side / "tree" / path)
        return self

    def launch(self, launch_id: str, *sources: str) -> Launch:
        return self.build.launch(f"{launch_id}@sm_90", source_path="", sources=sources)

    def pair(self, launch_id: str, base: Any, head: Any) -> Bench:
        self.pairs.append(
            Pair(
                id=f"{launch_id}@sm_90",
                launch_id=launch_id,
                target=self.build.target(),
                base=base,
                head=head,
                supported=Sides(base=True, head=True),
                moved=False,
            )
        )
        return self

    def read(self, workload: str, *, base: tuple[str, ...] = (), head: tuple[str, ...] = ()) -> Bench:
        catalogs = Sides(base=replace(NOTHING, read=base), head=replace(NOTHING, read=head))
        self.captured.append(
            CapturedWorkload(workload=workload, target=self.build.target(), catalogs=catalogs)
        )
        return self

    def corpus(self, side: str) -> Corpus:
        root = self.folder / side / "tree"
        return Corpus(root=root, workloads=(), digest=side, files=self.contents[side])

    def found(self) -> Reach:
        corpora = Sides(base=self.corpus("base"), head=self.corpus("head"))
        found = changed_files.of_revisions(corpora, self.pairs, self.captured)
        assert found is not None
        return found

    def rows(self) -> list[tuple[str, FileChange, int, int]]:
        return [(row.path, row.change, row.compiled_by, row.read_by) for row in self.found().files]


@pytest.fixture
def bench(tmp_path: Path, build: Any) -> Bench:
    return Bench(tmp_path, build)


def test_files_that_are_the_same_on_both_sides_are_not_listed(bench: Bench) -> None:
    bench.file("same.py", "x", "x").file("old.py", "x").file("new.py", head="x").file("edited.py", "x", "y")
    assert bench.rows() == [
        ("edited.py", FileChange.CHANGED, 0, 0),
        ("new.py", FileChange.ADDED, 0, 0),
        ("old.py", FileChange.REMOVED, 0, 0),
    ]
    assert bench.found().read_by == 0


def test_a_launch_reads_what_the_frontend_compiled_of_it_through_a_link(bench: Bench) -> None:
    bench.file("kernels/k.py", "x", "y").file("other.py", "x", "y").link("a/b.py", "kernels/k.py")
    launch = bench.launch("a/b:c", "a/b.py")
    bench.pair("a/b:c", launch, launch).pair("a/b:d", None, bench.launch("a/b:d", "a/b.py"))
    assert bench.rows() == [
        ("kernels/k.py", FileChange.CHANGED, 2, 2),
        ("other.py", FileChange.CHANGED, 0, 0),
    ]
    assert bench.found().read_by == 2


def test_what_capturing_opened_counts_for_every_launch_of_the_workload(bench: Bench) -> None:
    bench.file("data.json", "1", "2").file("kernels/k.py", "x", "y").link("a/b.py", "kernels/k.py")
    for name in ("a/b:c", "a/b:d", "x/y:z"):
        bench.pair(name, bench.launch(name, "a/b.py" if name == "a/b:c" else "none.py"), bench.launch(name))
    bench.read("a/b", head=("data.json", "../elsewhere/file"))
    assert bench.rows() == [
        ("data.json", FileChange.CHANGED, 0, 2),
        ("kernels/k.py", FileChange.CHANGED, 1, 1),
    ]
    assert bench.found().read_by == 2


def test_a_failure_launches_nothing_and_reads_nothing(bench: Bench) -> None:
    failure = Failure(kind=FailureKind.ERROR, stage="capture", message="", signal=None, stderr="")
    failed = CaptureFailure(id="a/b:c", expected=True, failure=failure)
    bench.file("data.json", "1", "2").pair("a/b:c", failed, failed).read("a/b", base=("data.json",))
    assert bench.rows() == [("data.json", FileChange.CHANGED, 0, 0)]


def test_who_follows_a_link_of_the_repository_reads_the_link_too(bench: Bench) -> None:
    """A link that leads elsewhere is a change of what is read, though no file's content changed."""
    bench.file("real/k.py", "x", "x").file("folder/linked.py", "1", "2").file("deep", "1", "2")
    for side in ("base", "head"):
        tree = bench.folder / side / "tree"
        (tree / "folder/linked.py").unlink()
        (tree / "folder/linked.py").symlink_to("../real/./k.py")
        (tree / "deep").unlink()
        (tree / "deep").symlink_to(tree / "folder")
    bench.pair("a/b:c", bench.launch("a/b:c", "deep/linked.py"), None)
    assert bench.rows() == [
        ("deep", FileChange.CHANGED, 1, 1),
        ("folder/linked.py", FileChange.CHANGED, 1, 1),
    ]


def test_links_in_a_circle_end(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changed_files, "_MAX_STEPS", 64)
    first, second = bench.folder / "first", bench.folder / "second"
    first.symlink_to(second)
    second.symlink_to(first)
    found = list(changed_files._links(first / "x"))
    assert set(found) == {first, second}
    assert len(found) < 64


@pytest.mark.parametrize("side", ["base", "head"])
def test_a_side_that_is_no_revision_has_no_reach(bench: Bench, side: str) -> None:
    corpora = {name: bench.corpus(name) for name in ("base", "head")}
    corpora[side] = replace(corpora[side], files=None)
    assert changed_files.of_revisions(Sides(**corpora), [], []) is None


def test_a_changed_function_that_nothing_ran_or_compiled_is_named(bench: Bench) -> None:
    text = "def settings(n):\n    return {}\n\n\ndef call(n):\n    return {}\n"
    bench.file("kernels/k.py", text.format(4, 1), "\n" + text.format(8, 2)).link("a/b.py", "kernels/k.py")
    launch = bench.launch("a/b:c", "a/b.py")
    bench.pair("a/b:c", launch, launch)
    catalogs = Sides(base=NOTHING, head=replace(NOTHING, called=("a/b.py:6",)))
    bench.captured.append(CapturedWorkload(workload="a/b", target=bench.build.target(), catalogs=catalogs))
    (file,) = bench.found().files
    assert file.not_run == ("settings",), "the other one ran at head"
