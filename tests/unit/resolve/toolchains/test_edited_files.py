"""What two trees of a checkout say before anything is built. Blobs are named by their content here."""

from __future__ import annotations

from pathlib import Path

import pytest

from irdiff.model import FileChange, Sides
from irdiff.resolve.toolchains import edited_files, links, source_parts
from irdiff.resolve.toolchains.checkout import Checkout
from irdiff.resolve.toolchains.repository import GitStore, Snapshot, TreeEntry
from irdiff.store import key_of

STORE = GitStore(git_dir=Path("/none"), common_dir=Path("/none"), worktree=None, objects=None, caller={})
FILES = {
    "setup.py": "setup(name='triton')\n",
    "CMakeLists.txt": "add_subdirectory(lib)\nadd_subdirectory(third_party/nvidia)\n",
    "lib/CMakeLists.txt": "add_triton_library(Ops Ops.cpp)\n",
    "lib/Ops.cpp": "int ops;\n",
    "third_party/nvidia/CMakeLists.txt": "",
    "third_party/nvidia/backend/driver.c": "int launch;\n",
    "third_party/nvidia/backend/compiler.py": "",
    "third_party/amd/backend/compiler.py": "",
    "third_party/amd/backend/driver.py": "",
    "python/triton/__init__.py": "",
    "python/triton/language/core.py": "",
    "python/triton/compiler/compiler.py": "",
    "python/test/unit/test_core.py": "",
    "python/tutorials/01.py": "",
    "python/triton_kernels/triton_kernels/matmul.py": "",
    "docs/index.rst": "",
    "README.md": "",
    ".github/workflows/build.yml": "",
}


def _checkout(files: dict[str, str], targets: dict[str, str] | None = None) -> Checkout:
    targets = targets or {}
    tree = {path: TreeEntry(path=path, mode="100644", blob=text, store=STORE) for path, text in files.items()}
    tree |= {
        path: TreeEntry(path=path, mode="120000", blob=text, store=STORE) for path, text in targets.items()
    }
    rows = source_parts.native_inputs(
        dict(files), lambda paths: {path: files[path].encode() for path in paths if path in files}
    )
    return Checkout(
        snapshot=Snapshot(store=STORE, tree="t", commit="c" * 40, spec="HEAD"),
        tree=tree,
        files=links.followed(tree, targets),
        native_digest=key_of(sorted(rows.items())),
        native_rows=rows,
        native_paths=tuple(rows),
        llvm=None,
    )


def _after(**changes: str | None) -> edited_files.Edited:
    head = {path: text for path, text in {**FILES, **changes}.items() if text is not None}
    return edited_files.compared(Sides(base=_checkout(FILES), head=_checkout(head)))


@pytest.mark.parametrize(
    ("path", "feeds", "identical"),
    [
        ("README.md", "documents", True),
        ("docs/index.rst", "documents", True),
        ("python/test/unit/test_core.py", "tests", True),
        ("python/tutorials/01.py", "tutorials", True),
        ("python/triton_kernels/triton_kernels/matmul.py", "kernels of triton_kernels, not compared", True),
        (".github/workflows/build.yml", "other files", True),
        ("python/triton/language/core.py", "Python frontend", False),
        ("python/triton/compiler/compiler.py", "shared Python", False),
        ("third_party/amd/backend/compiler.py", "Python of the backend amd", False),
        ("third_party/amd/backend/driver.py", "launcher of the backend amd", False),
        ("lib/Ops.cpp", "native code", False),
        ("CMakeLists.txt", "native code", False),
    ],
)
def test_what_a_file_feeds(path: str, feeds: str, identical: bool) -> None:
    found = _after(**{path: f"{FILES[path]}# other\n"})
    assert [(file.path, file.feeds, file.counts) for file in found.files] == [(path, (feeds,), not identical)]
    assert found.identical is identical


def test_a_file_may_feed_two_parts() -> None:
    found = _after(**{"third_party/nvidia/backend/driver.c": "int other;\n"})
    assert found.files[0].feeds == ("launcher of the backend nvidia", "native code")
    assert not found.identical


def test_a_comment_in_a_build_script_makes_the_same_compiler() -> None:
    found = _after(**{"setup.py": "# how it is built\nsetup(name='triton')\n"})
    assert (found.identical, found.files[0].counts) == (True, False)
    assert not _after(**{"setup.py": "setup(name='other')\n"}).identical


def test_files_that_came_and_went() -> None:
    found = _after(**{"python/triton/language/new.py": "", "docs/index.rst": None})
    assert [(file.path, file.change) for file in found.files] == [
        ("docs/index.rst", FileChange.REMOVED),
        ("python/triton/language/new.py", FileChange.ADDED),
    ]
    assert not found.identical


def test_a_mode_counts_and_a_link_counts_by_what_it_leads_to() -> None:
    linked = {"python/triton/language/extra/linked": "../../../../outside"}
    base, head = ({**FILES, "outside/math.py": text} for text in ("a", "b"))
    found = edited_files.compared(Sides(base=_checkout(base, linked), head=_checkout(head, linked)))
    assert not found.identical
    assert [(file.path, file.feeds) for file in found.files] == [("outside/math.py", ("Python frontend",))]
    elsewhere = {"python/triton/language/extra/linked": "../../../../other"}
    both = {**FILES, "outside/math.py": "a", "other/math.py": "b"}
    assert not edited_files.compared(
        Sides(base=_checkout(both, linked), head=_checkout(both, elsewhere))
    ).identical


def test_equal_trees_are_identical_and_list_nothing() -> None:
    assert edited_files.compared(
        Sides(base=_checkout(FILES), head=_checkout(dict(FILES)))
    ) == edited_files.Edited(files=(), of_kernels=False, identical=True)
