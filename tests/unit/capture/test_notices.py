"""What a run says of packages that are missing, and of configs that were left out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from irdiff.capture import notices
from irdiff.capture.catalogs import NOTHING, Catalog, Selection
from irdiff.capture.pairing import CapturedWorkload
from irdiff.model import CaptureFailure, Failure, FailureKind, Sides

TRACEBACK = """\
  File "/opt/irdiff/worker/operations.py", line 51, in prepare
  File "run/rope.py", line 3, in <module>
  File "mykernels/rope.py", line 1, in <module>
  File "<frozen importlib._bootstrap>", line 1178, in _find_and_load
ModuleNotFoundError: No module named 'torch'
"""


def lacking(
    message: str = "ModuleNotFoundError: No module named 'torch'", stderr: str = TRACEBACK
) -> Catalog:
    failure = Failure(kind=FailureKind.ERROR, stage="capture", message=message, signal=None, stderr=stderr)
    return replace(NOTHING, failures=(CaptureFailure(id="run/rope:*", expected=True, failure=failure),))


def notes(
    build: Any, base: Catalog, head: Catalog, *specs: str, workload: str = "run/rope", files: Any = None
) -> list[str]:
    corpus = SimpleNamespace(files=files)
    sides: Any = Sides(
        base=SimpleNamespace(toolchain=SimpleNamespace(spec=specs[0], python="/p/python"), corpus=corpus),
        head=SimpleNamespace(toolchain=SimpleNamespace(spec=specs[-1], python="/p/python"), corpus=corpus),
    )
    row = CapturedWorkload(workload=workload, target=build.target(), catalogs=Sides(base=base, head=head))
    return notices.notes([row, row], sides)


def test_a_package_that_a_release_lacks(build: Any) -> None:
    (note,) = notes(build, lacking(), lacking(), "triton==3.9.0")
    assert note.startswith("mykernels/rope.py needs the package torch, which triton==3.9.0 has not: ")
    assert "the workload run/rope is not compared; next: compare again --with torch" in note
    assert notices.MISSING_PACKAGE in note


def test_a_package_that_an_interpreter_lacks(build: Any) -> None:
    (note,) = notes(build, NOTHING, lacking(), "triton==3.9.0", "python:/p/python")
    assert note.endswith("next: /p/python -m pip install torch")


def test_the_repositorys_own_package_is_never_installed_from_the_index(build: Any) -> None:
    files = {"lib/torch/__init__.py": "", "bench/run.py": ""}
    (note,) = notes(build, lacking(), NOTHING, "triton==3.9.0", files=files)
    assert 'import = ["lib"]' in note and "--with" not in note and "install" not in note


def test_metadata_that_a_package_asks_for_is_part_of_it(build: Any) -> None:
    message = "PackageNotFoundError: No package metadata was found for my-kernels"
    (note,) = notes(build, lacking(message, ""), NOTHING, "triton==3.9.0")
    assert "run/rope.py needs the package my-kernels" in note and "--with my-kernels" in note


def test_other_failures_are_no_missing_packages(build: Any) -> None:
    assert notes(build, lacking("ImportError: cannot import name 'rope'"), NOTHING, "triton==3.9.0") == []


def test_configs_that_were_left_out_are_counted_once_a_kernel(build: Any) -> None:
    selection = Selection(tiers=(), labels=(), configs=2)
    cut = replace(NOTHING, selection=selection, left_out={"matmul": 5, "norm": 1})
    (note,) = notes(build, cut, replace(cut, left_out={"matmul": 6}), "triton==3.9.0")
    assert note == (
        "of each autotuning list 2 configs are compared (--configs): 7 configs of 2 kernels were left out"
    )


def test_paths_with_spaces_are_read_whole(build: Any, tmp_path: Path) -> None:
    stderr = f'  File "{tmp_path / "my kernels" / "rope.py"}", line 1, in <module>\n'
    (note,) = notes(build, lacking(stderr=stderr), NOTHING, "triton==3.9.0")
    assert note.startswith(f"{tmp_path / 'my kernels' / 'rope.py'} needs")
