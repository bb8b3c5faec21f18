"""What a toolchain is known by: one digest of all that its worker has loaded or may load, each file under a name
that is the same wherever it is installed.
"""

import os
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest

from irdiff import config as configuration
from irdiff.resolve.toolchains import identity
from irdiff.worker import loaded

MACHINE_CODE = b"\x7fELF"
PTXAS = "triton/backends/nvidia/bin/ptxas"
EMPTY = """
triton/__init__.py triton/language/core.py triton/compiler/compiler.py triton/runtime/jit.py
triton/backends/nvidia/compiler.py triton/backends/nvidia/driver.c tiny/__init__.py tiny/backend/__init__.py
tiny/backend/compiler.py tiny/backend/driver.py tiny/passes/one.py patched/__init__.py not_loaded/__init__.py
"""
FILES = {
    **dict.fromkeys(EMPTY.split(), b""),
    "triton/__pycache__/__init__.cpython-311.pyc": b"compiled",
    "triton/_C/libtriton.so": b"library",
    PTXAS: MACHINE_CODE,
    "tiny_tables/table.json": b"{}",
    "tiny-1.dist-info/METADATA": b"Metadata-Version: 2.1\nName: tiny\nVersion: 1\n",
    "tiny-1.dist-info/entry_points.txt": b"[triton.backends]\ntiny = tiny.backend\n",
    "tiny-1.dist-info/RECORD": b"tiny/__init__.py,,\ntiny_tables/table.json,,\ntiny-1.dist-info/METADATA,,\n",
}


@dataclass
class Installation:
    """`tiny` is a backend of another distribution; `patched` is a module that a `.pth` file brought in."""

    site: Path
    modules: dict[str, str] = field(default_factory=dict)
    """Name → file of what was imported."""
    libraries: list[Path] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    own: dict[str, str] = field(default_factory=dict)
    """What its worker finds in its environment, and irdiff has not set."""
    switches: list[str] = field(default_factory=list)
    interpreter: Path | None = None

    @classmethod
    def at(cls, folder):
        made = cls(site=folder / "lib" / "site-packages")
        for name, content in FILES.items():
            made.write(name, content)
        (made.site / PTXAS).chmod(0o755)
        made.modules = {
            "triton": str(made.site / "triton/__init__.py"),
            "tiny.backend.compiler": str(made.site / "tiny/backend/compiler.py"),
            "patched": str(made.site / "patched/__init__.py"),
            "json.decoder": str(sys.modules["json"].__file__),
        }
        made.libraries = [made.site / "triton/_C/libtriton.so", made.write("../libc.so.6", b"libc")]
        made.interpreter = made.write("../../bin/python", MACHINE_CODE)
        return made

    def write(self, name, content):
        path = Path(os.path.normpath(self.site / name))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path

    def described(self):
        """The reply of its interpreter."""
        names = ("triton/backends/nvidia/compiler", "tiny/backend/compiler")
        own = {n.replace("/", "."): SimpleNamespace(__file__=str(self.site / f"{n}.py")) for n in names}
        backends = {
            name: SimpleNamespace(compiler=type("Backend", (), {"__module__": module}))
            for name, module in zip(("nvidia", "tiny"), own, strict=True)
        }
        triton = SimpleNamespace(
            __file__=str(self.site / "triton/__init__.py"),
            __version__="9",
            backends=SimpleNamespace(backends=backends),
            knobs=SimpleNamespace(nvidia=SimpleNamespace(ptxas=SimpleNamespace(path=str(self.site / PTXAS)))),
        )
        modules = {name: SimpleNamespace(__file__=path) for name, path in self.modules.items()}
        modules["__main__"] = SimpleNamespace(__file__="/somewhere/__main__.py")
        maps = "".join(f"7f00-7f01 r-xp 00000000 08:01 7 {path}\n" for path in self.libraries)
        with (
            mock.patch.dict(sys.modules, own),
            mock.patch.object(sys, "path", [str(self.site), *sys.path]),
            mock.patch.dict("os.environ", self.environment),
        ):
            reply = loaded.describe(triton, modules, maps + "7f00-7f01 r-xp 0 0 0 [vdso]\n")
        reply["files"]["interpreter"] = str(self.interpreter)
        return reply


@pytest.fixture
def made(tmp_path):
    return Installation.at(tmp_path / "here")


@pytest.fixture
def identify(tmp_path, monkeypatch):
    def call(made):
        config = configuration.load(cache=tmp_path / "cache")
        environment = {**config.compiler_environment, **made.own}
        known = {"knobs": {}, "options": {}}
        reply = {**made.described(), **known, "environment": environment, "switches": made.switches}
        monkeypatch.setattr(identity, "_ask_worker", lambda *_: reply)
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
        "triton/__init__.py",
        "triton/backends/nvidia/driver.c",
        "package:tiny/__init__.py",
        "package:tiny/backend/__init__.py",
        "package:tiny/backend/driver.py",
        "package:tiny/passes/one.py",
        "distribution:tiny/tiny_tables/table.json",
        "module:patched/__init__.py",
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


def test_what_starts_the_interpreter_may_set_variables_and_switches(made, identify):
    before = identify(made)
    made.own |= {"PWD": "/anywhere", "SHLVL": "2"}
    assert identify(made).digest == before.digest
    made.own["DISABLE_LLVM_OPT"] = "1"
    setting = identify(made)
    assert (setting.variables, before.variables) == ({"DISABLE_LLVM_OPT": "1"}, {})
    made.own["LC_ALL"] = "de_DE.UTF-8"
    others = identify(made)
    made.switches = ["-O1"]
    assert len({found.digest for found in (before, setting, others, identify(made))}) == 4


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
