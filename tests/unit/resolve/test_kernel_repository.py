from __future__ import annotations

from pathlib import Path

import pytest

from irdiff.cli import init_toml
from irdiff.errors import UsageError
from irdiff.resolve import kernel_repository

KERNEL = "import triton\n\n\n@triton.jit\ndef k(x):\n    pass\n"
WORKLOAD = "from irdiff_corpus import launch\nfrom pkg.k import k\n\nLAUNCHES = {}\n"


@pytest.mark.parametrize(
    ("name", "text", "version"),
    [
        ("requirements.txt", "torch\ntriton==3.8.0 ; sys_platform == 'linux'\n", "3.8.0"),
        ("requirements.txt", "# triton==3.7.0\ntriton == 3.9.0+cu126 \\\n  --hash=sha256:0\n", "3.9.0+cu126"),
        ("requirements.txt", "pytorch-triton==3.2.0\ntriton>=3.0\n", None),
        ("uv.lock", '[[package]]\nname = "triton"\nversion = "3.5.1"\n', "3.5.1"),
        ("pylock.toml", '[[packages]]\nname = "triton"\nversion = "3.6.0"\n', "3.6.0"),
        ("requirements.lock", "numpy==2.0\ntriton==3.9.0\n", "3.9.0"),
        ("pyproject.toml", '[project]\ndependencies = ["torch", "triton==3.4.0"]\n', "3.4.0"),
        ("poetry.lock", "not toml", None),
    ],
)
def test_pinned_version(name: str, text: str, version: str | None) -> None:
    assert kernel_repository.pinned_version(name, text.encode()) == version


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[kernels", "is not TOML"),
        ("", "does not say where the workloads are"),
        ("[kernels]\nworkloads = 3\n", "does not say where the workloads are"),
        ("[kernels]\nworkloads = 'w'\nkernel = 1\n", "has no key 'kernel'"),
        ("[kernels]\nworkloads = '../w'\n", "is not a folder of the repository"),
        ("[kernels]\nworkloads = 'w'\nimport = ['/etc']\n", "is not a folder of the repository"),
        ("[kernels]\nworkloads = 'w'\ntoolchain = 3\n", "of the wrong type"),
    ],
)
def test_wrong_plans(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        kernel_repository.parse_plan(text.encode(), "irdiff.toml")


def test_what_init_writes_is_a_plan(tmp_path: Path) -> None:
    files = {
        "src/pkg/__init__.py": "",
        "src/pkg/k.py": KERNEL,
        "bench/irdiff/family/k.py": WORKLOAD,
        "bench/irdiff/other/k.py": WORKLOAD,
        "requirements.txt": "triton==3.8.0\n",
        ".venv/lib/x.py": KERNEL,
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found = init_toml.look_around(tmp_path)
    assert found.kernels == ("src/pkg/k.py",)
    plan = kernel_repository.parse_plan(init_toml.irdiff_toml(found).encode(), "irdiff.toml")
    assert plan.workloads == "bench/irdiff"
    assert plan.imports == ("src",)
    assert (plan.pin, plan.toolchain) == ("requirements.txt", "triton==3.8.0")


def test_init_in_an_empty_folder(tmp_path: Path) -> None:
    found = init_toml.look_around(tmp_path)
    plan = kernel_repository.parse_plan(init_toml.irdiff_toml(found).encode(), "irdiff.toml")
    assert not found.has_workloads
    assert (plan.workloads, plan.imports, plan.pin) == ("irdiff", (".",), None)
