"""The identity of installed toolchains: what is loaded counts, and where it lies does not."""

from pathlib import Path

import pytest

from irdiff.resolve import toolchains
from tests.programs import edited_toolchain
from tests.programs.checkouts import write


def identified(folder, config):
    return toolchains.resolve(f"python:{folder}/bin/python", config)


@pytest.mark.parametrize("spec", [pytest.param("triton==3.7.1", marks=pytest.mark.wide), "triton==3.9.0"])
def test_releases_are_known_by_their_content(config, spec):
    found = toolchains.resolve(spec, config)
    assert found.notes == ()
    assert toolchains.resolve(f"python:{found.python}", config).digest == found.digest
    assert Path(found.root, "__init__.py").is_file()
    assert found.runtime.keys() >= {"triton/runtime/jit.py", "triton/backends/nvidia/driver.c"}
    assert {Path(path).name for path in found.programs} >= {"ptxas", "ptxas-blackwell"}


def test_what_patches_triton_counts_and_what_lies_beside_it_does_not(newest, config, tmp_path):
    one, two = (edited_toolchain.beside(newest, tmp_path / name) for name in ("one", "a/two"))
    first = identified(tmp_path / "one", config)
    assert identified(tmp_path / "a" / "two", config).digest == first.digest

    (two / "beside").mkdir()
    (two / "beside" / "__init__.py").write_text("")
    assert identified(tmp_path / "a" / "two", config).digest == first.digest

    (two / "patch.pth").write_text("import patch_of_triton\n")
    (two / "patch_of_triton.py").write_text("import os\n")
    patched = identified(tmp_path / "a" / "two", config)
    assert patched.digest != first.digest
    (two / "patch_of_triton.py").write_text("import sys\n")
    assert identified(tmp_path / "a" / "two", config).digest != patched.digest

    (one / "sitecustomize.py").write_text("import os\n")
    assert identified(tmp_path / "one", config).digest != first.digest


def test_what_starts_an_interpreter_may_set_a_variable_and_is_another_toolchain(irdiff, newest, tmp_path):
    """Its code is never taken for the release's, whichever of the two comes first."""
    script = tmp_path / "python"
    script.write_text(f'#!/bin/sh\nexport DISABLE_LLVM_OPT=1\nexec {newest.python} "$@"\n')
    script.chmod(0o755)
    words = ("--case", "elementwise/vector_add:fp32-16m", "--target", "gfx942", "--no-recheck")
    results = [
        irdiff("compare", *sides, *words)
        for sides in ((f"python:{script}", newest.spec), (newest.spec, f"python:{script}"))
    ]
    assert [result.verdicts() for result in results] == [{"changed": 1}] * 2
    first, second = (result.run["cases"][0]["artifacts"] for result in results)
    assert (first["base"], first["head"]) == (second["head"], second["base"])


def test_a_wrapped_assembler_is_another_one(irdiff, newest, tmp_path):
    """The same release, once with its assembler replaced by one of the same name that adds a flag."""
    real = next(path for path in newest.programs if Path(path).name == "ptxas-blackwell")
    wrapper = tmp_path / "tools" / "ptxas-blackwell"
    wrapper.parent.mkdir()
    wrapper.write_text(f'#!/bin/sh\nexec {real} -O0 "$@"\n')
    wrapper.chmod(0o755)
    site = edited_toolchain.beside(newest, tmp_path / "one")
    setting = f"import os; os.environ['TRITON_PTXAS_BLACKWELL_PATH'] = {str(wrapper)!r}\n"
    write(site, {"wrap.pth": setting})
    words = ("--case", "elementwise/vector_add:fp32-odd", "--target", "sm_90")
    result = irdiff("compare", newest.spec, f"python:{tmp_path}/one/bin/python", *words)
    assert result.code == 0, result.stderr
    assert set(result.verdicts()) == {"changed"}
    assert any("is a script" in note for note in result.run["notes"])
