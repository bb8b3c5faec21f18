"""What two trees of a checkout say before anything is built."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from irdiff.model import Edited, FileChange, Sides
from irdiff.resolve.toolchains import edited_files
from tests.unit.resolve.toolchains.trees import CheckoutOf

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
    "unittest/CMakeLists.txt": "",
    "docs/index.rst": "",
    "README.md": "",
    ".github/workflows/build.yml": "",
}


Texts = dict[str, str]
Compared = Callable[..., Edited]


@pytest.fixture
def compared(checkout_of: CheckoutOf) -> Compared:
    """Compares two trees, each with its files and its links."""

    def between(base: Texts, head: Texts, base_links: Texts, head_links: Texts) -> Edited:
        return edited_files.compared(
            Sides(base=checkout_of(base, base_links), head=checkout_of(head, head_links))
        )

    return between


@pytest.fixture
def after(compared: Compared) -> Compared:
    """Compares the tree with itself after edits; None removes a file."""

    def edited(**changes: str | None) -> Edited:
        head = {path: text for path, text in {**FILES, **changes}.items() if text is not None}
        return compared(FILES, head, {}, {})

    return edited


@pytest.mark.parametrize(
    ("path", "feeds", "identical"),
    [
        ("README.md", "documents", True),
        ("docs/index.rst", "documents", True),
        ("python/test/unit/test_core.py", "tests", True),
        ("python/tutorials/01.py", "tutorials", True),
        ("python/triton_kernels/triton_kernels/matmul.py", "kernels of triton_kernels, not compared", True),
        (".github/workflows/build.yml", "other files", True),
        ("python/triton/language/core.py", "Python", False),
        ("python/triton/compiler/compiler.py", "Python", False),
        ("third_party/amd/backend/compiler.py", "Python of the backend amd", False),
        ("third_party/amd/backend/driver.py", "Python of the backend amd", False),
        ("lib/Ops.cpp", "native code", False),
        ("CMakeLists.txt", "native code", False),
        ("setup.py", "native code", False),
        ("unittest/CMakeLists.txt", "native code", False),
    ],
)
def test_what_a_file_feeds(after: Compared, path: str, feeds: str, identical: bool) -> None:
    found = after(**{path: f"{FILES[path]}# other\n"})
    assert [(file.path, file.feeds, file.counts) for file in found.files] == [(path, (feeds,), not identical)]
    assert found.identical is identical


def test_a_file_may_feed_two_parts(after: Compared) -> None:
    found = after(**{"third_party/nvidia/backend/driver.c": "int other;\n"})
    assert found.files[0].feeds == ("Python of the backend nvidia", "native code")
    assert not found.identical


def test_files_that_came_and_went(after: Compared) -> None:
    found = after(**{"python/triton/language/new.py": "", "docs/index.rst": None})
    assert [(file.path, file.change) for file in found.files] == [
        ("docs/index.rst", FileChange.REMOVED),
        ("python/triton/language/new.py", FileChange.ADDED),
    ]
    assert not found.identical


def test_a_link_counts_by_what_it_leads_to(compared: Compared) -> None:
    linked = {"python/triton/language/extra/linked": "../../../../outside"}
    base, head = ({**FILES, "outside/math.md": text} for text in ("a", "b"))
    found = compared(base, head, linked, linked)
    assert not found.identical
    assert [(file.path, file.feeds) for file in found.files] == [("outside/math.md", ("Python",))]
    assert compared(base, head, {}, {}).identical
    elsewhere = {"python/triton/language/extra/linked": "../../../../other"}
    both = {**FILES, "outside/math.md": "a", "other/math.md": "b"}
    assert not compared(both, both, linked, elsewhere).identical


def test_equal_trees_are_identical_and_list_nothing(after: Compared) -> None:
    assert after() == Edited(files=(), of_kernels=False, identical=True)
