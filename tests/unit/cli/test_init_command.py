"""What `irdiff init` finds in a repository, and which irdiff its jobs are to run."""

from __future__ import annotations

from pathlib import Path

import pytest

from irdiff.cli import init_toml

FILES = {
    "irdiff/run/rope.py": "from irdiff_corpus import launch\nfrom mine.ops.rope import rope\n\nLAUNCHES = {}\n",
    "src/mine/__init__.py": "import importlib.metadata\nfrom .version import VERSION\n",
    "src/mine/version.py": "import packaging.version\nVERSION = 1\n",
    "src/mine/ops/__init__.py": "",
    "src/mine/ops/rope.py": "import torch\nimport triton\nfrom ..late import f\n\n\n@triton.jit\ndef rope(x):\n    pass\n",
    "src/mine/late.py": (
        "try:\n    import flash_attn\nexcept ImportError:\n    flash_attn = None\n"
        "if TYPE_CHECKING:\n    import numpy\nelse:\n    import einops\n\n\ndef f():\n    import scipy\n"
    ),
    "src/mine/unrelated.py": "import pandas\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path, FILES)
    return tmp_path


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def test_packages_are_those_that_importing_the_workloads_needs(root: Path) -> None:
    found = init_toml.look_around(root)
    assert found.packages == ("einops", "packaging", "torch")
    assert (found.imports, found.workloads) == (("src",), "irdiff")
    assert 'packages = ["einops", "packaging", "torch"]' in init_toml.irdiff_toml(found)
    assert init_toml.folders_imported_from(root / "irdiff", root) == ("src",)


def test_versions_are_left_to_a_lock_file_and_else_taken_from_the_environment(root: Path) -> None:
    for name in ("torch-2.13.0+cpu", "einops-0.8.2", "triton-3.8.0"):
        (root / ".venv/lib/python3.11/site-packages" / f"{name}.dist-info").mkdir(parents=True)
    found = init_toml.look_around(root)
    assert found.packages == ("einops==0.8.2", "packaging", "torch==2.13.0+cpu")
    assert 'toolchain = "triton==3.8.0"' in init_toml.irdiff_toml(found)
    (root / "requirements.txt").write_text("triton==3.9.0\ntorch==2.12.0\n")
    found = init_toml.look_around(root, ["scipy==1.15.0"])
    assert found.pin == "requirements.txt"
    assert found.packages == ("einops==0.8.2", "packaging", "scipy==1.15.0", "torch")
