"""What a toolchain is known by, from replies of interpreters that are not there."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from irdiff import config as configuration
from irdiff.config import Config
from irdiff.model import Toolchain
from irdiff.resolve.toolchains import identity, interpreter_answers

MACHINE_CODE = b"\x7fELF"
FILES: dict[str, bytes] = {
    "triton/__init__.py": b"__version__ = '9'\n",
    "triton/_C/libtriton.so": b"library",
    "triton/language/core.py": b"",
    "triton/compiler/compiler.py": b"from ..backends import backends\n",
    "triton/runtime/build.py": b"",
    "triton/backends/__init__.py": b"backends = {}\n",
    "triton/backends/compiler.py": b"",
    "triton/backends/driver.py": b"",
    "triton/backends/nvidia/__init__.py": b"",
    "triton/backends/nvidia/compiler.py": b"",
    "triton/backends/nvidia/driver.py": b"",
    "triton/backends/nvidia/driver.c": b"",
    "triton/backends/nvidia/bin/ptxas": MACHINE_CODE + b"1",
    "triton/backends/amd/__init__.py": b"",
    "triton/backends/amd/compiler.py": b"",
    "triton/backends/amd/driver.py": b"",
    "triton/backends/amd/lib/codegen.so": b"library",
    "tiny/__init__.py": b"",
    "tiny/compiler.py": b"",
    "tiny/driver.py": b"",
    "tiny/passes/one.py": b"",
    "beside/__init__.py": b"",
}


@dataclass
class Installation:
    """Files in a folder of packages, and the reply of its interpreter."""

    site: Path
    reply: dict[str, Any]

    def write(self, name: str, content: bytes) -> Path:
        path = self.site / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path

    def identified(self, config: Config) -> Toolchain:
        return identity._identified(self.reply, "spec", str(self.site.parent / "python"), self.site, config)


@pytest.fixture
def settings(tmp_path: Path) -> Config:
    return configuration.load(cache=tmp_path / "cache")


@pytest.fixture
def install(tmp_path: Path) -> Callable[[str], Installation]:
    def at(folder: str) -> Installation:
        site = tmp_path / folder / "lib" / "site-packages"
        made = Installation(site=site, reply={})
        for name, content in FILES.items():
            made.write(name, content)
        (site / "triton/backends/nvidia/bin/ptxas").chmod(0o755)
        interpreter = made.write("../../bin/python", MACHINE_CODE)
        made.write("../json/decoder.py", b"")
        base = ["triton/backends/compiler.py"]
        made.reply.update(
            triton="9",
            python="3.11.7",
            implementation="CPython",
            backends=["amd", "nvidia", "tiny"],
            root=str(site / "triton"),
            modules={
                "triton": str(site / "triton/__init__.py"),
                "tiny.compiler": str(site / "tiny/compiler.py"),
                "json.decoder": str(site.parent / "json/decoder.py"),
            },
            libraries=[str(site / "triton/_C/libtriton.so"), os.path.realpath(interpreter)],
            executable=os.path.realpath(interpreter),
            stdlib=[str(site.parent)],
            startup=[],
            set=[],
            held=[],
            values=[],
            programs={"ptxas": str(site / "triton/backends/nvidia/bin/ptxas")},
            parts={
                "nvidia": made_of(
                    site, ["cuda"], [*base, "triton/backends/nvidia/compiler.py"], "triton/backends/nvidia"
                ),
                "amd": made_of(
                    site, ["hip"], [*base, "triton/backends/amd/compiler.py"], "triton/backends/amd"
                ),
                "tiny": made_of(
                    site,
                    ["tiny"],
                    [*base, "triton/backends/nvidia/compiler.py", "tiny/compiler.py"],
                    "tiny",
                ),
            },
        )
        return made

    return at


def made_of(site: Path, targets: list[str] | None, files: list[str], folder: str) -> dict[str, Any]:
    return {
        "targets": targets,
        "files": [str(site / name) for name in files],
        "driver": [str(site / folder / "driver.py")],
        "distribution": [],
    }


def moved(before: Toolchain, after: Toolchain) -> set[str]:
    """What differs: `digest`, and the targets below the frontend and `launch NAME`."""
    found = {"digest"} if before.digest != after.digest else set()
    found |= {
        name for name in before.below_frontend if before.below_frontend[name] != after.below_frontend[name]
    }
    return found | {
        f"launch {name}" for name in before.launchers if before.launchers[name] != after.launchers[name]
    }


def test_two_installations_at_other_paths_are_one_toolchain(install, settings: Config) -> None:
    here, there = install("here").identified(settings), install("elsewhere/deep").identified(settings)
    assert moved(here, there) == set()
    assert here.notes == ()
    assert set(here.below_frontend) == {"cuda", "hip", "tiny"}
    assert here.digest not in here.below_frontend.values()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("triton/language/core.py", {"digest"}),
        ("triton/backends/nvidia/compiler.py", {"digest", "cuda", "tiny"}),
        ("triton/backends/nvidia/bin/ptxas", {"digest", "cuda", "tiny"}),
        ("triton/backends/amd/compiler.py", {"digest", "hip"}),
        ("triton/backends/amd/lib/codegen.so", {"digest", "hip"}),
        ("tiny/passes/one.py", {"digest", "tiny"}),
        ("tiny/driver.py", {"digest", "launch tiny"}),
        ("triton/_C/libtriton.so", {"digest", "cuda", "hip", "tiny"}),
        ("triton/knobs.py", {"digest", "cuda", "hip", "tiny"}),
        ("triton/backends/nvidia/driver.c", {"digest", "launch cuda", "launch tiny"}),
        (
            "triton/backends/driver.py",
            {"digest", "cuda", "hip", "tiny", "launch cuda", "launch hip", "launch tiny"},
        ),
        ("../json/decoder.py", {"digest", "cuda", "hip", "tiny"}),
        ("../../bin/python", {"digest", "cuda", "hip", "tiny"}),
        ("beside/__init__.py", set()),
    ],
)
def test_what_a_change_of_one_file_changes(install, settings: Config, name: str, expected: set[str]) -> None:
    """`tiny` inherits from NVIDIA's backend, and is what both folders hold."""
    made = install("here")
    before = made.identified(settings)
    made.write(name, b"# changed\n" if name.endswith(".py") else MACHINE_CODE + b"changed")
    assert moved(before, made.identified(settings)) == expected


def test_a_library_of_a_backend_that_is_loaded_with_triton_counts_for_all(install, settings: Config) -> None:
    made = install("here")
    made.reply["libraries"].append(str(made.site / "triton/backends/amd/lib/codegen.so"))
    before = made.identified(settings)
    made.write("triton/backends/amd/lib/codegen.so", b"changed")
    assert moved(before, made.identified(settings)) == {"digest", "cuda", "hip", "tiny"}


def test_modules_and_lines_of_startup_files_count_where_they_are_loaded(install, settings: Config) -> None:
    made = install("here")
    before = made.identified(settings)
    patch = made.write("patches/sitecustomize.py", b"import json\n")
    assert moved(before, made.identified(settings)) == set()
    made.reply["modules"]["sitecustomize"] = str(patch)
    patched = made.identified(settings)
    assert moved(before, patched) == {"digest", "cuda", "hip", "tiny"}
    made.reply["startup"] = [["patch.pth", ["import json; json.x = 1"]]]
    assert moved(patched, made.identified(settings)) == {"digest", "cuda", "hip", "tiny"}


def test_a_patch_that_leads_to_the_frontend_is_said(install, settings: Config) -> None:
    made = install("here")
    patch = made.write("patch.py", b"from triton.language import core\n")
    made.reply["modules"]["patch"] = str(patch)
    found = made.identified(settings)
    assert set(found.below_frontend.values()) == {found.digest}
    assert "spec: for cuda every change of the toolchain counts" in found.notes[0]
    assert "module:patch.py:1 refers to triton.language.core" in found.notes[0]


@pytest.mark.parametrize("asks", [b"", b"metadata['triton_version']\n", b"from triton import __version__\n"])
def test_the_number_of_a_release_is_no_code_of_stages_that_do_not_ask_for_it(
    install, settings: Config, asks: bytes
) -> None:
    made = install("here")
    made.write("triton/backends/nvidia/compiler.py", asks)
    found = []
    for number in (b"1", b"2"):
        made.write("triton/__init__.py", b"\n__version__ = '" + number + b"'\nimport os\n")
        found.append(made.identified(settings))
    assert found[0].below_frontend["cuda"] != found[1].below_frontend["cuda"]
    assert (found[0].stage_code["cuda"] == found[1].stage_code["cuda"]) is (not asks)
    made.write("triton/__init__.py", b"\n__version__ = '2'\nimport sys\n")
    assert made.identified(settings).stage_code["cuda"] != found[1].stage_code["cuda"]


def test_what_imports_have_set_counts_for_all(install, settings: Config) -> None:
    made = install("here")
    before = made.identified(settings)
    made.reply["set"] = [["DISABLE_LLVM_OPT", "1"]]
    after = made.identified(settings)
    assert after.digest != before.digest
    assert all(after.below_frontend[name] != digest for name, digest in before.below_frontend.items())


@pytest.mark.parametrize(
    ("file", "counting"),
    [
        ("triton/compiler/compiler.py", {"cuda", "hip"}),
        ("triton/backends/nvidia/compiler.py", {"cuda"}),
        ("triton/backends/nvidia/driver.py", set()),
        ("triton/language/core.py", set()),
    ],
)
def test_a_plain_value_counts_where_its_module_takes_part(
    install, settings: Config, file: str, counting: set[str]
) -> None:
    """Any file of the frontend may have set it."""
    made = install("here")
    made.reply["modules"]["m"] = str(made.site / file)
    found = []
    for value in ("3", "0"):
        made.reply["values"] = [["m", "LEVEL", value]]
        found.append(made.identified(settings))
    before, after = found
    assert before.digest == after.digest
    for name in ("cuda", "hip"):
        assert (before.below_frontend[name] != after.below_frontend[name]) is (name in counting)
        assert (before.stage_code[name] != after.stage_code[name]) is (name in counting)


@pytest.mark.parametrize(
    ("module", "name", "file", "counts"),
    [
        ("triton.backends.nvidia.compiler", "", "triton/language/core.py", True),
        ("triton.backends.nvidia.compiler", "core", "triton/language/core.py", True),
        ("triton.backends.nvidia.compiler", "", "triton/backends/nvidia/compiler.py", False),
        ("triton._C.libtriton.ir", "run", "triton/language/core.py", True),
        ("triton.language.core", "load", "triton/language/core.py", False),
    ],
)
def test_a_function_of_the_frontend_that_stages_hold_is_said(
    install, settings: Config, module: str, name: str, file: str, counts: bool
) -> None:
    """Something that was imported has put it there, in place of a stage or into a registry."""
    made = install("here")
    before = made.identified(settings)
    made.reply["modules"] |= {
        "triton.backends.nvidia.compiler": str(made.site / "triton/backends/nvidia/compiler.py"),
        "triton.language.core": str(made.site / "triton/language/core.py"),
    }
    made.reply["held"] = [[module, name, str(made.site / file)]]
    found = made.identified(settings)
    assert (found.below_frontend["cuda"] == found.digest) is counts
    assert any("holds something of triton/language/core.py" in note for note in found.notes) is counts
    assert (found.stage_code == before.stage_code) is not counts


def test_only_the_backend_that_breaks_the_rule_falls_back(install, settings: Config) -> None:
    made = install("here")
    made.write("tiny/compiler.py", b"from .driver import device\n")
    found = made.identified(settings)
    assert [name for name, digest in found.below_frontend.items() if digest == found.digest] == ["tiny"]
    assert len(found.notes) == 1


def test_a_backend_that_does_not_show_its_targets_counts_for_all(install, settings: Config) -> None:
    made = install("here")
    made.reply["parts"]["tiny"]["targets"] = None
    before = made.identified(settings)
    assert set(before.below_frontend) == {"cuda", "hip"}
    assert "does not show which targets" in before.notes[0]
    made.write("tiny/passes/one.py", b"changed = 1\n")
    assert moved(before, made.identified(settings)) == {"digest", "cuda", "hip"}


def test_programs_of_one_name_are_told_apart_by_the_file_that_they_resolve_to(
    install, settings: Config
) -> None:
    made = install("here")
    made.write("tiny/bin/ptxas", MACHINE_CODE + b"another").chmod(0o755)
    elsewhere = made.write("../../tools/ptxas-real", MACHINE_CODE + b"third")
    (made.site / "triton/backends/nvidia/bin/ptxas-blackwell").symlink_to(elsewhere)
    elsewhere.chmod(0o755)
    found = made.identified(settings)
    real = {
        os.path.realpath(made.site / name) for name in ("triton/backends/nvidia/bin/ptxas", "tiny/bin/ptxas")
    }
    assert set(found.programs) == {*real, os.path.realpath(elsewhere)}
    assert len(set(found.programs.values())) == 3
    assert {"backends/nvidia/bin/ptxas"} < set(found.assemblers)


def test_a_script_is_no_program_of_which_the_same_can_be_said(install, settings: Config) -> None:
    made = install("here")
    real = made.write("../../tools/real", MACHINE_CODE)
    wrapper = f'#!/bin/sh\nexec {real} -O1 "$@"\n'.encode()
    made.write("triton/backends/nvidia/bin/ptxas", wrapper)
    before = made.identified(settings)
    assert before.programs == {}
    assert "ptxas is a script" in before.notes[0]
    real.write_bytes(MACHINE_CODE + b"changed")
    assert moved(before, made.identified(settings)) == {"digest", "cuda", "tiny"}


def test_a_program_that_a_variable_names_counts(install, settings: Config) -> None:
    made = install("here")
    path = made.write("../../tools/ptxas", MACHINE_CODE)
    made.reply["programs"]["TRITON_PTXAS_PATH"] = str(path)
    before = made.identified(settings)
    assert str(path.resolve()) in before.programs
    path.write_bytes(MACHINE_CODE + b"changed")
    assert moved(before, made.identified(settings)) == {"digest", "cuda", "hip", "tiny"}


def test_an_overlaid_package_is_the_one_that_it_links_to(install, settings: Config) -> None:
    made, over = install("here"), install("over")
    shutil.rmtree(over.site / "triton")
    for name in FILES:
        if name.startswith("triton/"):
            (over.site / name).parent.mkdir(parents=True, exist_ok=True)
            (over.site / name).symlink_to(made.site / name)
    over.reply["libraries"][0] = str(made.site / "triton/_C/libtriton.so")  # as the kernel names it
    first, second = made.identified(settings), over.identified(settings)
    assert moved(first, second) == set()
    assert set(first.programs) & set(second.programs)


def test_an_answer_is_given_again_until_something_that_was_loaded_changes(
    install, settings: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = install("here")
    python = str(made.site.parents[1] / "bin" / "python")
    patch = made.write("patches/patch.py", b"")
    made.reply["modules"]["patch"] = str(patch)
    made.reply["search_path"] = [str(made.site)]
    asked = []

    def ask(*_: object) -> dict[str, Any]:
        asked.append(1)
        return made.reply

    monkeypatch.setattr(interpreter_answers, "ask", ask)
    monkeypatch.setattr(interpreter_answers, "now", lambda: 4e9)  # long after the files were written
    first = identity.identify("spec", python, made.site, settings)
    assert identity.identify("spec", python, made.site, settings) == first
    assert len(asked) == 1
    patch.write_bytes(b"other = 1\n")
    assert identity.identify("spec", python, made.site, settings).digest != first.digest
    assert len(asked) == 2
