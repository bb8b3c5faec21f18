from __future__ import annotations

from pathlib import Path

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


def repository(root: Path, **more: str) -> Path:
    for name, text in {**FILES, **more}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_packages_are_those_that_importing_the_workloads_needs(tmp_path: Path) -> None:
    found = init_toml.look_around(repository(tmp_path))
    assert found.packages == ("einops", "packaging", "torch")
    assert found.imports == ("src",) and found.workloads == "irdiff"
    assert 'packages = ["einops", "packaging", "torch"]' in init_toml.irdiff_toml(found)


def test_versions_are_left_to_a_lock_file_and_else_taken_from_the_environment(tmp_path: Path) -> None:
    site = tmp_path / ".venv/lib/python3.11/site-packages"
    for name in ("torch-2.13.0+cpu", "einops-0.8.2", "triton-3.8.0"):
        (site / f"{name}.dist-info").mkdir(parents=True)
    found = init_toml.look_around(repository(tmp_path))
    assert found.packages == ("einops==0.8.2", "packaging", "torch==2.13.0+cpu")
    assert 'toolchain = "triton==3.8.0"' in init_toml.irdiff_toml(found)
    (tmp_path / "requirements.txt").write_text("triton==3.9.0\ntorch==2.12.0\n")
    found = init_toml.look_around(tmp_path)
    assert (found.pin, found.packages) == ("requirements.txt", ("einops==0.8.2", "packaging", "torch"))


def test_folders_that_workloads_import_from(tmp_path: Path) -> None:
    root = repository(tmp_path)
    assert init_toml.folders_imported_from(root / "irdiff", root) == ("src",)


def test_a_package_of_the_repository_is_not_taken_for_one_that_it_is_called_like(tmp_path: Path) -> None:
    """`mine.triton` is not triton, and a folder without __init__.py lies in the package around it."""
    more = {
        "irdiff/run/rope.py": "import triton.language as tl\nimport irdiff_corpus\nfrom mine.ops.rope import rope\n\nLAUNCHES = {}\n",
        "src/mine/triton/__init__.py": "",
        "src/mine/torch.py": "",
        "src/mine/ops/extra/far.py": "import triton\n\n\n@triton.jit\ndef far(x):\n    pass\n",
    }
    found = init_toml.look_around(repository(tmp_path, **more))
    assert found.imports == ("src",)
    assert found.packages == ("einops", "packaging", "torch")


def test_packages_that_were_asked_for_come_with_their_versions(tmp_path: Path) -> None:
    found = init_toml.look_around(repository(tmp_path), ["torch==2.13.0", "scipy"])
    assert found.packages == ("einops", "packaging", "scipy", "torch==2.13.0")
    (tmp_path / "requirements.txt").write_text("triton==3.9.0\ntorch==2.13.0\nscipy==1.16.0\n")
    found = init_toml.look_around(tmp_path, ["torch==2.13.0", "scipy==1.15.0"])
    assert found.packages == ("einops", "packaging", "scipy==1.15.0", "torch"), "the lock file names torch"
