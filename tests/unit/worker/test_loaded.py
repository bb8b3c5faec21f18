"""What a worker says that it has loaded: each file under a name that is the same wherever it is installed."""

import pytest

from tests.unit.installation import MACHINE_CODE, PTXAS, Installation


@pytest.fixture
def made(tmp_path):
    return Installation.at(tmp_path / "here")


def test_what_is_loaded_and_all_of_what_makes_code_is_named(made):
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


def test_a_module_of_an_archive_is_the_archive(made):
    archive = made.write("../packed.zip", b"PK")
    made.modules["packed"] = f"{archive}/packed/__init__.py"
    assert str(archive) in made.described()["files"].values()


def test_two_libraries_of_one_name_are_both_named(made):
    other = made.write("../other/libc.so.6", b"another libc")
    made.libraries.append(other)
    assert {str(path) for path in made.libraries} <= set(made.described()["files"].values())


def test_programs_are_those_that_triton_brings_and_those_that_it_is_told_of(made):
    outside = made.write("../../tools/ptxas", MACHINE_CODE)
    made.environment["TRITON_PTXAS_BLACKWELL_PATH"] = str(outside)
    made.write("triton/backends/nvidia/bin/cuobjdump", MACHINE_CODE).chmod(0o755)
    made.write("triton/backends/nvidia/bin/readme.txt", b"")
    reply = made.described()
    tools = {str(made.site / f"triton/backends/nvidia/bin/{name}") for name in ("ptxas", "cuobjdump")}
    assert set(reply["programs"]) == {str(outside), *tools}
    assert reply["files"]["program:TRITON_PTXAS_BLACKWELL_PATH"] == str(outside)
