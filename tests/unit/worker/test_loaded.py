"""What a worker says that it has loaded: each file under a name that is the same wherever it is installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.installation import MACHINE_CODE, PTXAS, Installation


@pytest.fixture
def made(tmp_path: Path) -> Installation:
    return Installation.at(tmp_path / "here")


def test_names_hold_no_folders(made: Installation, tmp_path: Path) -> None:
    here, there = made.described(), Installation.at(tmp_path / "elsewhere" / "deep").described()
    assert list(here["files"]) == list(there["files"])
    assert not any(str(tmp_path) in name for name in here["files"])
    assert here["startup"] == there["startup"]


def test_what_is_loaded_and_all_of_what_makes_code_is_named(made: Installation) -> None:
    assert set(made.described()["files"]) == {
        "triton/__init__.py",
        "triton/_C/libtriton.so",
        "triton/language/core.py",
        "triton/compiler/compiler.py",
        "triton/runtime/jit.py",
        "triton/backends/nvidia/compiler.py",
        "triton/backends/nvidia/driver.c",
        PTXAS,
        "package:tiny/__init__.py",
        "package:tiny/backend/__init__.py",
        "package:tiny/backend/compiler.py",
        "package:tiny/backend/driver.py",
        "package:tiny/passes/one.py",
        "distribution:tiny/tiny_tables/table.json",
        "module:patched/__init__.py",
        "library:libc.so.6",
        "interpreter",
    }


def test_a_module_of_an_archive_is_the_archive(made: Installation) -> None:
    archive = made.write("../packed.zip", b"PK")
    made.modules["packed"] = f"{archive}/packed/__init__.py"
    assert str(archive) in made.described()["files"].values()


def test_two_libraries_of_one_name_are_both_named(made: Installation) -> None:
    other = made.write("../other/libc.so.6", b"another libc")
    made.libraries.append(other)
    assert {str(path) for path in made.libraries} <= set(made.described()["files"].values())


def test_a_library_that_was_reached_through_a_link_has_one_name(made: Installation) -> None:
    """The package of a revision is a folder of links to another one: the kernel names the file itself."""
    before = set(made.described()["files"])
    library = made.site / "triton/_C/libtriton.so"
    real = library.rename(made.site.parent / "libtriton.so")
    library.symlink_to(real)
    made.libraries[0] = real
    assert set(made.described()["files"]) == before


def test_lines_that_startup_files_run_are_told(made: Installation) -> None:
    before = made.described()["startup"]
    made.write("z.pth", b"/some/folder\nimport patched\nimportant/folder\n")
    assert [row for row in made.described()["startup"] if row not in before] == [
        ["z.pth", ["import patched"]]
    ]


def test_programs_are_those_that_triton_brings_and_those_that_it_is_told_of(made: Installation) -> None:
    outside = made.write("../../tools/ptxas", MACHINE_CODE)
    made.environment["TRITON_PTXAS_BLACKWELL_PATH"] = str(outside)
    made.write("triton/backends/nvidia/bin/cuobjdump", MACHINE_CODE).chmod(0o755)
    made.write("triton/backends/nvidia/bin/readme.txt", b"")
    reply = made.described()
    tools = {str(made.site / f"triton/backends/nvidia/bin/{name}") for name in ("ptxas", "cuobjdump")}
    assert set(reply["programs"]) == {str(outside), *tools}
    assert reply["files"]["program:TRITON_PTXAS_BLACKWELL_PATH"] == str(outside)
