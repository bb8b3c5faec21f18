"""Symbolic links count by what they say and by what they lead to."""

from __future__ import annotations

import pytest

from irdiff.resolve.toolchains import links
from irdiff.resolve.toolchains.repository import TreeEntry
from tests.unit.resolve.toolchains.trees import STORE

FILES = {
    "setup.py": "import os\n",
    "CMakeLists.txt": "add_subdirectory(lib)\n",
    "lib/CMakeLists.txt": "",
    "docs/table.rst": "one\n",
    "include/triton/Ops.td": "",
    "python/triton/__init__.py": "",
    "shared/passes.py": "first = 1\n",
    "shared/more/stages.py": "",
    "shared/more/words.txt": "",
}
LINKS = {
    "lib/table.inc": "../docs/table.rst",
    "python/triton/passes.py": "../../shared/passes.py",
    "python/triton/more": "../../shared/more",
    "python/triton/_C/include": "../../../include",
}


@pytest.mark.parametrize(
    ("files", "links"),
    [
        (FILES, {**LINKS, "lib/table.inc": "../docs/other.rst"}),
        ({**FILES, "docs/table.rst": "two\n"}, LINKS),
    ],
    ids=["another-target", "another-content"],
)
def test_a_linked_source_counts_by_its_target_and_what_is_there(checkout_of, files, links) -> None:
    assert checkout_of(FILES, LINKS).native_digest != checkout_of(files, links).native_digest


def test_what_a_link_leads_to_is_named_among_the_native_paths(checkout_of) -> None:
    assert "docs/table.rst" in checkout_of(FILES, LINKS).native_paths
    assert "docs/table.rst" not in checkout_of(FILES, {}).native_paths


def test_the_mode_of_a_file_counts(checkout_of) -> None:
    with_tool = {**FILES, "lib/make.sh": ""}
    assert (
        checkout_of(with_tool, LINKS).native_digest
        != checkout_of(with_tool, LINKS, {"lib/make.sh": "100755"}).native_digest
    )


def test_linked_modules_are_python_part_with_the_content_that_they_lead_to(checkout_of) -> None:
    part = checkout_of(FILES, LINKS).python_part({"triton/__init__.py"})
    assert {place: entry.path for place, entry in part.items()} == {
        "triton/__init__.py": "python/triton/__init__.py",
        "triton/passes.py": "shared/passes.py",
        "triton/more/stages.py": "shared/more/stages.py",
    }


def test_links_through_links_out_of_the_tree_and_in_circles() -> None:
    tree = {
        path: TreeEntry(path=path, mode="100644", blob="b", store=STORE)
        for path in ("a/file.py", "b/other.py")
    }
    said = {"b/link": "../a", "c": "b", "out": "../../etc", "round": "about", "about": "round", "self": "."}
    found = links.followed(tree, said)
    assert found["c/link/file.py"].path == "a/file.py"
    assert set(found) == {"a/file.py", "b/other.py", "b/link/file.py", "c/link/file.py", "c/other.py"}
