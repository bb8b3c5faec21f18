"""What the files of a checkout of Triton, or of a repository of kernels, are for, and what an edit of them can change."""

from operator import itemgetter

import pytest

from irdiff.model import Sides
from irdiff.resolve import pins, remote_repositories, tree_edits
from irdiff.resolve.toolchains import checkout
from tests.unit.golden import golden

GOLDEN = golden("checkout")
CMAKE, NATIVE, BESIDE, PYTHON, BOTH = (
    GOLDEN[name] for name in ("cmake", "native", "beside", "python", "both")
)
FILES = {
    **dict.fromkeys([*NATIVE, *BESIDE, *PYTHON, *BOTH, "third_party/other/backend/compiler.py"], ""),
    **CMAKE,
}


def native(files):
    named = checkout.names_in_cmake(text for path, text in files.items() if checkout.is_cmake(path))
    return {path for path in files if checkout.is_native(path, named)}


def test_what_feeds_the_native_part():
    assert native(FILES) == {*NATIVE, *BOTH}
    assert checkout.is_checkout(FILES)
    assert not checkout.is_checkout({"setup.py": "", "mykernels/__init__.py": ""})


NAMED = "${GENERATORS}/make.py ../tools/make.py make.py ${TOOLS}/${WHICH}.py ma${K}.py ${DIR}/*.py"


@pytest.mark.parametrize("named", NAMED.split())
@pytest.mark.parametrize("path", ["python/triton/tools/make.py", "test/make.py"])
def test_a_script_that_cmake_names_counts_wherever_it_lies(named, path):
    text = f"add_custom_command(COMMAND python {named})"
    assert path not in native({**FILES, path: ""})
    assert path in native({**FILES, path: "", "lib/CMakeLists.txt": text})


LINKED = {"docs/table.rst": "one\n", "shared/passes.py": "first = 1\n", "shared/more/stages.py": ""}
LINKS = {
    "lib/table.inc": "../docs/table.rst",
    "python/triton/passes.py": "../../shared/passes.py",
    "python/triton/more": "../../shared/more",
    "python/triton/_C/include": "../../../include",
}


@pytest.mark.parametrize(
    "other",
    [
        (LINKED, {**LINKS, "lib/table.inc": "../docs/other.rst"}),
        ({**LINKED, "docs/table.rst": "two\n"}, LINKS),
        (LINKED, LINKS, {"lib/CMakeLists.txt": "100755"}),
    ],
    ids=["another target", "another content", "another mode"],
)
def test_native_inputs_count_by_link_content_and_mode(checkout_of, other):
    before = checkout_of({**CMAKE, **LINKED}, LINKS)
    assert "docs/table.rst" in before.native_paths
    assert before.native_digest != checkout_of({**CMAKE, **other[0]}, *other[1:]).native_digest


def test_links_lead_to_what_they_name(checkout_of):
    """Linked modules are Python part; links may go through links, out of the tree and in circles."""
    part = checkout_of({**LINKED, "include/triton/Ops.td": ""}, LINKS).python_part({"triton/__init__.py"})
    assert {place: entry.path for place, entry in part.items()} == {
        "triton/__init__.py": "python/triton/__init__.py",
        "triton/passes.py": "shared/passes.py",
        "triton/more/stages.py": "shared/more/stages.py",
    }
    links = {"b/link": "../a", "c": "b", "out": "../../etc", "round": "about", "about": "round", "self": "."}
    found = checkout_of({"a/file.py": "", "b/other.py": ""}, links).files
    assert found["c/link/file.py"].path == "a/file.py"
    behind = {"b/link/file.py", "c/link/file.py", "c/other.py"}
    assert set(found) == {"setup.py", "python/triton/__init__.py", "a/file.py", "b/other.py", *behind}


@pytest.fixture
def after(checkout_of):
    """Compares the tree with itself after edits; None removes a file."""

    def edits(changes):
        head = {path: text for path, text in {**FILES, **changes}.items() if text is not None}
        return tree_edits.of_compilers(Sides(base=checkout_of(FILES), head=checkout_of(head)))

    return edits


@pytest.mark.parametrize("path", [*BESIDE, *GOLDEN["feeds"]])
def test_what_a_file_feeds(after, path):
    feeds, counts = GOLDEN["feeds"].get(path) or [BESIDE.get(path)], path not in BESIDE
    found = after({path: f"{FILES[path]}# other\n"})
    assert [(file.path, file.feeds, file.counts) for file in found.files] == [(path, tuple(feeds), counts)]
    assert found.identical is not counts


def test_an_edit_behind_a_link_counts_by_what_it_leads_to(checkout_of):
    link, outside = "python/triton/language/extra/linked", {"other/math.md": "b"}

    def compared(*sides):
        base, head = (
            checkout_of({**outside, "outside/math.md": text}, {link: f"../../../../{to}"} if to else {})
            for text, to in sides
        )
        return tree_edits.of_compilers(Sides(base=base, head=head))

    found = compared(("a", "outside"), ("b", "outside"))
    assert [(file.path, file.feeds) for file in found.files] == [("outside/math.md", ("Python",))]
    assert not found.identical
    assert compared(("a", None), ("b", None)).identical
    assert not compared(("a", "outside"), ("a", "other")).identical


KERNELS = golden("kernel-repositories")


@pytest.mark.parametrize("row", KERNELS["pin"], ids=itemgetter("name"))
def test_a_pin_means_what_the_tools_that_write_it_mean(row):
    files = {"requirements/base.txt": b"-r ../requirements.txt\ntriton==3.7.1\n"}
    assert pins.version(row["name"], row["text"].encode(), read=files.get) == row.get("version")


def test_a_repository_elsewhere_or_a_revision_of_the_one_at_hand():
    for row in KERNELS["elsewhere"]:
        found = remote_repositories.parse(row["spec"])
        assert found and {"url": found.url, "revision": found.revision}.items() <= row.items()
    assert [spec for spec in KERNELS["here"] if remote_repositories.parse(spec)] == []
