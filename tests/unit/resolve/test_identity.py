"""What a toolchain is known by: one digest of all that its worker has loaded or may load."""

import os
import shutil

import pytest

from irdiff import config as configuration
from irdiff.resolve.toolchains import identity
from tests.unit.installation import FILES, MACHINE_CODE, PTXAS, Installation


@pytest.fixture
def made(tmp_path):
    return Installation.at(tmp_path / "here")


@pytest.fixture
def identify(tmp_path, monkeypatch):
    def call(made):
        monkeypatch.setattr(identity, "_asked", lambda *_: made.described())
        config = configuration.load(cache=tmp_path / "cache")
        return identity.identify("spec", str(made.interpreter), made.site, config)

    return call


def test_two_installations_at_other_paths_are_one_toolchain(made, tmp_path, identify):
    here, there = identify(made), identify(Installation.at(tmp_path / "elsewhere" / "deep"))
    assert here.digest == there.digest
    assert here.notes == ()
    assert here.root == str(made.site / "triton")
    assert here.assemblers == {"backends/nvidia/bin/ptxas": here.programs[str((made.site / PTXAS).resolve())]}
    assert set(here.runtime) == {
        "triton/compiler/compiler.py",
        "triton/runtime/jit.py",
        "triton/backends/nvidia/driver.c",
        "package:tiny/backend/driver.py",
    }


LOADED = [name for name in FILES if name.startswith("triton/") and "__pycache__" not in name]


OTHERS = ["tiny/backend/compiler.py", "tiny/passes/one.py", "tiny_tables/table.json", "patched/__init__.py"]
NEW = ["triton/language/new.py", "triton/backends/nvidia/lib/new.bc", "tiny/passes/two.py"]
NOT_LOADED = ["not_loaded/__init__.py", "triton/__pycache__/core.cpython-311.pyc"]


@pytest.mark.parametrize("name", [*LOADED, *OTHERS, *NEW, "../libc.so.6", "../../bin/python", *NOT_LOADED])
def test_a_file_counts_where_it_is_loaded_or_makes_code(made, identify, name):
    before, path = identify(made), made.site / name
    made.write(name, (path.read_bytes() if path.exists() else b"") + b"# edited\n")
    assert (identify(made).digest != before.digest) is (name not in NOT_LOADED)


def test_what_is_loaded_at_startup_is_another_toolchain(made, identify):
    before = identify(made)
    patch = made.write("../patches/sitecustomize.py", b"import json\n")
    assert identify(made).digest == before.digest
    made.modules["sitecustomize"] = str(patch)
    patched = identify(made)
    assert patched.digest != before.digest
    made.write("patch.pth", b"import json; json.x = 1\n")
    assert identify(made).digest != patched.digest


def test_a_program_that_a_variable_names_counts(made, identify):
    """A script in place of an assembler may run anything: it is another toolchain each time."""
    path = made.write("../../tools/ptxas", MACHINE_CODE)
    made.environment["TRITON_PTXAS_PATH"] = str(path)
    before = identify(made)
    assert str(path.resolve()) in before.programs
    path.write_bytes(MACHINE_CODE + b"edited")
    assert identify(made).digest != before.digest
    path.write_bytes(b'#!/bin/sh\nexec /usr/bin/ptxas -O1 "$@"\n')
    first, second = identify(made), identify(made)
    assert first.digest != second.digest
    assert str(path.resolve()) not in first.programs and "ptxas is a script" in " ".join(first.notes)


def test_programs_of_one_name_are_told_apart_by_the_file_that_they_resolve_to(made, identify):
    made.write("triton/backends/other/bin/ptxas", MACHINE_CODE + b"another").chmod(0o755)
    elsewhere = made.write("../../tools/ptxas-real", MACHINE_CODE + b"third")
    elsewhere.chmod(0o755)
    (made.site / "triton/backends/nvidia/bin/ptxas-blackwell").symlink_to(elsewhere)
    found = identify(made)
    names = (PTXAS, "triton/backends/other/bin/ptxas")
    assert set(found.programs) == {*(os.path.realpath(made.site / name) for name in names), str(elsewhere)}
    assert len(set(found.programs.values())) == 3


def test_an_overlaid_package_is_the_one_that_it_links_to(made, tmp_path, identify):
    over = Installation.at(tmp_path / "over")
    shutil.rmtree(over.site / "triton")
    for name in FILES:
        if name.startswith("triton/"):
            (over.site / name).parent.mkdir(parents=True, exist_ok=True)
            (over.site / name).symlink_to(made.site / name)
    over.libraries[0] = made.libraries[0]  # as the kernel names it
    first, second = identify(made), identify(over)
    assert (first.digest, first.programs) == (second.digest, second.programs)
