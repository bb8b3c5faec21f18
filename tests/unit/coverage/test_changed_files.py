"""Which launches read a changed file, through links of the repository too."""

from dataclasses import replace

import pytest

from irdiff.capture.catalog import NOTHING
from irdiff.capture.pairing import CapturedWorkload
from irdiff.coverage import changed_files
from irdiff.model import CaptureFailure, FileChange, Sides
from irdiff.resolve.corpus import Corpus
from tests.unit import runs

CHANGED = FileChange.CHANGED
KERNEL = "@triton.jit\ndef copy(x):\n    pass\n"


class Revisions:
    """Two revisions of a repository, each exported to a `tree`."""

    def __init__(self, folder):
        self.roots = Sides(base=folder / "base/tree", head=folder / "head/tree")
        self.files = {"base": {}, "head": {}}
        self.pairs = []
        self.captured = []

    def file(self, path, base=None, head=None):
        for side, text in (("base", base), ("head", head)):
            if text is not None:
                place = self.roots.of(side) / path
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text(text)
                self.files[side][path] = text

    def link(self, name, target):
        """A link of both revisions: to a path from the root, or relative with a dot."""
        for root in self.roots:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).unlink(missing_ok=True)
            (root / name).symlink_to(target if target.startswith(".") else root / target)

    def launch(self, launch_id, *sources):
        return runs.launch(f"{launch_id}@sm_90", source_path="", sources=sources)

    def pair(self, launch_id, base, head):
        self.pairs.append(runs.pair(f"{launch_id}@sm_90", base, head))

    def capture(self, workload, **head):
        catalogs = Sides(base=NOTHING, head=replace(NOTHING, **head))
        row = CapturedWorkload(workload=workload, target=runs.target(), catalogs=catalogs)
        self.captured.append(row)

    def reach(self, *, without=""):
        corpora = Sides(**{
            side: Corpus(root=root, workloads=(), digest=side, files=None if side == without else self.files[side])
            for side, root in (("base", self.roots.base), ("head", self.roots.head))
        })  # fmt: skip
        return changed_files.of_revisions(corpora, self.pairs, self.captured)

    def rows(self):
        found = self.reach()
        return [(row.path, row.change, row.compiled_by, row.read_by) for row in found.files]


@pytest.fixture
def revisions(tmp_path):
    return Revisions(tmp_path)


def test_files_that_are_the_same_on_both_sides_are_not_listed(revisions):
    for name, *texts in (("same", "x", "x"), ("old", "x", None), ("new", None, "x"), ("edited", "x", "y")):
        revisions.file(f"{name}.py", *texts)
    assert revisions.rows() == [
        ("edited.py", CHANGED, 0, 0),
        ("new.py", FileChange.ADDED, 0, 0),
        ("old.py", FileChange.REMOVED, 0, 0),
    ]
    assert revisions.reach(without="base") is revisions.reach(without="head") is None, "one is no revision"


def test_a_launch_reads_what_the_frontend_compiled_of_it_through_a_link(revisions):
    revisions.file("kernels/k.py", "x", "y")
    revisions.file("other.py", "x", "y")
    revisions.link("a/b.py", "kernels/k.py")
    launch = revisions.launch("a/b:c", "a/b.py")
    revisions.pair("a/b:c", launch, launch)
    revisions.pair("a/b:d", None, revisions.launch("a/b:d", "a/b.py"))
    assert revisions.rows() == [("kernels/k.py", CHANGED, 2, 2), ("other.py", CHANGED, 0, 0)]
    found = revisions.reach()
    assert found is not None and found.read_by == 2


def test_what_capturing_opened_counts_for_every_launch_of_the_workload_and_for_no_failure(revisions):
    revisions.file("data.json", "1", "2")
    revisions.file("kernels/k.py", "x", "y")
    revisions.link("a/b.py", "kernels/k.py")
    for name in ("a/b:c", "a/b:d", "x/y:z"):
        source = "a/b.py" if name == "a/b:c" else "none.py"
        revisions.pair(name, revisions.launch(name, source), revisions.launch(name))
    failed = CaptureFailure(id="a/b:f", expected=True, failure=runs.failed(stage="capture").failure)
    revisions.pair("a/b:f", failed, failed)
    revisions.capture("a/b", read=("data.json", "../elsewhere/file"))
    assert revisions.rows() == [("data.json", CHANGED, 0, 2), ("kernels/k.py", CHANGED, 1, 1)]


def test_a_file_of_a_workload_that_was_renamed_is_read_by_base(revisions):
    revisions.file("old.py", "x", None)
    revisions.pair("new:a", revisions.launch("old:a"), revisions.launch("new:a"))
    revisions.capture("old")
    revisions.captured[0] = replace(
        revisions.captured[0], catalogs=Sides(base=replace(NOTHING, read=("old.py",)), head=NOTHING)
    )
    assert [(path, read_by) for path, _, _, read_by in revisions.rows()] == [("old.py", 1)]


def test_who_follows_a_link_of_the_repository_reads_the_link_too(revisions):
    """A link that leads elsewhere is a change of what is read, though no file's content changed."""
    revisions.file("real/k.py", "x", "x")
    revisions.file("folder/linked.py", "1", "2")
    revisions.file("deep", "1", "2")
    revisions.link("folder/linked.py", "../real/./k.py")
    revisions.link("deep", "folder")
    revisions.pair("a/b:c", revisions.launch("a/b:c", "deep/linked.py"), None)
    assert revisions.rows() == [("deep", CHANGED, 1, 1), ("folder/linked.py", CHANGED, 1, 1)]


def test_a_changed_function_that_nothing_ran_or_compiled_is_named(revisions):
    text = "def settings(n):\n    return {}\n\n\ndef call(n):\n    return {}\n"
    revisions.file("kernels/k.py", text.format(4, 1), "\n" + text.format(8, 2))
    revisions.link("a/b.py", "kernels/k.py")
    launch = revisions.launch("a/b:c", "a/b.py")
    revisions.pair("a/b:c", launch, launch)
    revisions.capture("a/b", called=("a/b.py:6:call",))
    found = revisions.reach()
    assert found is not None and found.files[0].not_run == ("settings",), "the other one ran at head"


@pytest.mark.parametrize(("at_head", "not_run"), [(KERNEL, ()), (KERNEL + "    return\n", ("copy",))])
def test_a_kernel_of_a_file_that_was_only_moved_is_neither_new_nor_changed(revisions, at_head, not_run):
    revisions.file("k.py", base=KERNEL)
    revisions.file("kernels/k.py", head=at_head)
    found = revisions.reach()
    assert found is not None
    assert {file.path: file.not_run for file in found.files} == {"k.py": (), "kernels/k.py": not_run}


def test_of_a_file_that_no_launch_reads_functions_are_named_where_it_holds_kernels(revisions):
    kernel = "@triton.jit\ndef kernel(n):\n    n\n\n\n"
    call = "def call(n):\n    return {}\n"
    revisions.file("ops/rope.py", kernel + call.format(4), kernel + call.format(8))
    revisions.file("ops/new.py", None, kernel + call)
    revisions.file("ops/tuned.py", f"@triton.autotune([2])\n{kernel}", f"@triton.autotune([4])\n{kernel}")
    revisions.file("tests/test_rope.py", call.format(4), call.format(8))
    assert [row.not_run for row in revisions.reach().files] == [("kernel",), ("call",), ("kernel",), ()]


def test_of_a_file_without_py_functions_are_named_where_one_of_them_ran(revisions):
    text = "def call(n):\n    return 1\n\n\ndef settings(n):\n    return {}\n"
    for name in ("k.triton", "text.triton"):
        revisions.file(name, text.format(4), text.format(8))
    revisions.pair("a/b:c", revisions.launch("a/b:c"), None)
    revisions.capture("a/b", read=("k.triton", "text.triton"), called=("k.triton:1:call",))
    assert [file.not_run for file in revisions.reach().files] == [("settings",), ()]


def test_a_function_is_told_from_others_in_its_first_line(revisions):
    text = "@tuned(lambda: 0)\n@triton.jit\ndef kernel(x):\n    return {}\n"
    revisions.file("k.py", text.format(1), text.format(2))
    revisions.capture("a/b", read=("k.py",), called=("k.py:1:<lambda>",))
    assert [file.not_run for file in revisions.reach().files] == [("kernel",)]


def test_nothing_is_said_to_have_run_of_a_file_that_was_not_parsed(revisions):
    revisions.file("k.py", "def f(): pass", "def f(:")
    revisions.file("unread.py", "def f(): pass", "@triton.jit\ndef f(:")
    revisions.pair("a/b:c", revisions.launch("a/b:c"), revisions.launch("a/b:c"))
    revisions.capture("a/b", read=("k.py",))
    (words,), none = (file.not_run for file in revisions.reach().files)
    assert words.startswith("any of k.py (Python 3.") and none == ()
