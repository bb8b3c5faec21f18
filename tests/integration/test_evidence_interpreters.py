"""Kernels in the site-packages of an interpreter: what differs between two interpreters, and what changes in one.

Both interpreters have the very same compiler, linked from the shared toolchain, so that nothing but the packages
beside it tells them apart.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.programs.evidence import comparing, rows
from tests.programs.evidence.comparing import Compared, Repository

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1800)]

NAMES = (
    *(
        "comment",
        "docstring",
        "moved_lines",
        "renamed_local",
        "unread_file",
        "unused_function",
        "renamed_helper",
    ),
    *(
        "own_constant",
        "global_constexpr",
        "star_imported_constexpr",
        "module_number",
        "nested_module_constexpr",
    ),
    *("inherited_class_attribute", "closure_value", "patched_by_another_module", "helper_in_another_file"),
    *("helper_of_nested_module", "noinline_put_on_helper", "keyword_only_default", "positional_default"),
    *("function_argument", "constexpr_function_instance", "constexpr_function_lazy_import", "made_by_exec"),
    *("json_at_import", "package_resource", "file_that_appears", "module_that_appears", "exists", "globbed"),
    *("extern_library", "missing_module_at_base", "missing_module_at_head", "does_not_compile_at_head"),
)
ROWS = [row for row in rows.load() if row.name in NAMES]
WAYS = ("warm", "empty", "no-shortcut")


@dataclass(frozen=True)
class Interpreter:
    """A virtual environment with the shared compiler and packages of its own."""

    path: Path

    @property
    def side(self) -> str:
        return f"python:{self.path / 'bin' / 'python'}"

    def install(self, files: Mapping[str, str]) -> None:
        """Those below `src`, into its site-packages."""
        for name, text in files.items():
            if name.startswith("src/"):
                comparing.write(self.packages / name.removeprefix("src/"), text)

    @property
    def packages(self) -> Path:
        return next(self.path.glob("lib/python*/site-packages"))


def new_interpreter(path: Path, toolchain: Path) -> Interpreter:
    subprocess.run([toolchain, "-m", "venv", "--without-pip", path], check=True)
    made = Interpreter(path)
    theirs = next(toolchain.parent.parent.glob("lib/python*/site-packages"))
    for entry in theirs.iterdir():
        (made.packages / entry.name).symlink_to(entry)
    return made


def write_corpus(folder: Path, files: Mapping[str, str]) -> Path:
    """The workloads of rows as a corpus that both sides share."""
    for name, text in files.items():
        if name.startswith("bench/"):
            comparing.write(folder / name.removeprefix("bench/"), text)
    return folder


@pytest.fixture(scope="module")
def toolchain(shared_cache: Path) -> Path:
    return comparing.toolchain_python(shared_cache)


@pytest.fixture(scope="module")
def compared(
    shared_cache: Path, toolchain: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Compared]:
    return comparing.once(
        tmp_path_factory,
        "interpreters",
        lambda: _compared(shared_cache, toolchain, tmp_path_factory.mktemp("interpreters")),
    )


def _compared(shared_cache: Path, toolchain: Path, folder: Path) -> dict[str, Compared]:
    base = {path: text for row in ROWS for path, text in row.base.items()}
    head = {path: text for row in ROWS for path, text in row.head.items()}
    sides = {}
    for name, files in (("base", base), ("other", rows.computing_differently(base)), ("head", head)):
        sides[name] = new_interpreter(folder / name, toolchain)
        sides[name].install(files)
    words = ("--corpus", str(write_corpus(folder / "corpus", base)))
    warm, empty = (comparing.new_cache(folder / name, shared_cache) for name in ("warm", "empty"))
    for other in ("base", "other"):
        comparing.compare(sides["base"].side, sides[other].side, *words, cache=warm, repo=folder)
    both = sides["base"].side, sides["head"].side
    return {
        "warm": comparing.compare(*both, *words, cache=warm, repo=folder),
        "empty": comparing.compare(*both, *words, cache=empty, repo=folder),
        "no-shortcut": comparing.compare(*both, *words, "--no-cache", cache=warm, repo=folder),
    }


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_packages_of_two_interpreters(row: rows.Row, way: str, compared: dict[str, Compared]) -> None:
    assert tuple(compared[way].verdicts_of(row.workload)) == row.expected, row.about


@pytest.fixture
def two(toolchain: Path, tmp_path: Path) -> Iterator[tuple[Interpreter, Interpreter]]:
    yield new_interpreter(tmp_path / "first", toolchain), new_interpreter(tmp_path / "second", toolchain)


def row_named(name: str) -> rows.Row:
    return next(row for row in ROWS if row.name == name)


def test_a_missing_module_is_looked_for_again(
    two: tuple[Interpreter, Interpreter], shared_cache: Path, tmp_path: Path
) -> None:
    """A failure that names something missing holds for what was there then, not for the toolchain."""
    row = row_named("missing_module_at_base")
    cache = comparing.new_cache(tmp_path / "cache", shared_cache)
    words = ("--corpus", str(write_corpus(tmp_path / "corpus", row.base)))
    one = two[0]
    one.install(row.base)
    failed = comparing.compare(one.side, one.side, *words, cache=cache, repo=tmp_path)
    assert failed.verdicts_of(row.workload) == ["failing"]
    assert "No module named" in (failed.cases()[0]["error"] or "")
    one.install(row.head)
    again = comparing.compare(one.side, one.side, *words, cache=cache, repo=tmp_path)
    assert again.verdicts_of(row.workload) == ["unchanged"]


def test_a_package_edited_in_place(
    two: tuple[Interpreter, Interpreter], shared_cache: Path, tmp_path: Path
) -> None:
    """The same interpreter with another content of its packages is another side."""
    row = row_named("helper_in_another_file")
    cache = comparing.new_cache(tmp_path / "cache", shared_cache)
    words = ("--corpus", str(write_corpus(tmp_path / "corpus", row.base)))
    for interpreter in two:
        interpreter.install(row.base)
    sides = [interpreter.side for interpreter in two]
    before = comparing.compare(*sides, *words, cache=cache, repo=tmp_path)
    assert before.verdicts_of(row.workload) == ["unchanged"]
    two[1].install(row.head)
    after = comparing.compare(*sides, *words, cache=cache, repo=tmp_path)
    assert after.verdicts_of(row.workload) == ["changed"]


def test_a_file_elsewhere_that_changes_between_two_comparisons(shared_cache: Path, tmp_path: Path) -> None:
    """Neither revision changes; what both read outside of the repository does."""
    row = row_named("own_constant")
    outside = tmp_path / "scale.txt"
    reading = f"SCALE = tl.constexpr(float(open({str(outside)!r}).read()))\n\n\n@triton.jit"
    kernel = f"src/{row.name}/kernel.py"
    head = {
        **row.base,
        kernel: row.base[kernel].replace("@triton.jit", reading).replace("x * 2.0", "x * SCALE"),
    }
    repo = Repository.new(tmp_path / "kernels")
    repo.commit("base", row.base)
    repo.commit("head", head)
    cache = comparing.new_cache(tmp_path / "cache", shared_cache)
    for scale, expected in (("2.0", "unchanged"), ("3.0", "changed"), ("2.0", "unchanged")):
        outside.write_text(scale)
        found = comparing.compare_commits(repo, "base", "head", cache=cache)
        assert found.verdicts_of(row.workload) == [expected], scale
