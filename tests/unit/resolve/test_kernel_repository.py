from __future__ import annotations

from pathlib import Path

import pytest

from irdiff.cli import init_toml
from irdiff.errors import UsageError
from irdiff.resolve import kernel_repository, pins

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
    assert pins.version(name, text.encode()) == version


TABLE = "[kernels]\nworkloads = 'w'\n"


@pytest.mark.parametrize(
    ("text", "workloads", "imports", "toolchain", "pin"),
    [
        (TABLE, "w", (".",), None, None),
        (TABLE + "import = 'src'\n", "w", ("src",), None, None),
        (
            TABLE + "import = ['.', 'a/b']\ntoolchain = 'triton==3.9.0'\n",
            "w",
            (".", "a/b"),
            "triton==3.9.0",
            None,
        ),
        ("[kernels]\nworkloads = 'a//b/'\nimport = []\npin = 'uv.lock'\n", "a/b", (), None, "uv.lock"),
    ],
)
def test_plans(
    text: str, workloads: str, imports: tuple[str, ...], toolchain: str | None, pin: str | None
) -> None:
    plan = kernel_repository.parse_plan(text.encode(), "irdiff.toml")
    assert (plan.workloads, plan.imports, plan.toolchain, plan.pin) == (workloads, imports, toolchain, pin)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[kernels", "irdiff.toml of main is not TOML"),
        ("a = " + "[" * 100_000, "is not TOML"),
        ("\xff", "is not TOML"),
        ("", "kernels: is missing"),
        ("kernels = 3", "kernels: "),
        (
            "[kernels]\n",
            'kernels: program = "COMMAND" or workloads = "FOLDER" says what launches the kernels',
        ),
        (TABLE + "program = 'b.py'\n", "says what launches the kernels"),
        ("[kernels]\nworkloads = 3\n", "kernels.workloads: Input should be a valid string"),
        ("[kernels]\nworkloads = ''\n", "kernels.workloads: '' is not a folder of the repository"),
        ("[kernel]\nworkloads = 'w'\n", "kernel: there is no such key; did you mean 'kernels'?"),
        (TABLE + "imports = 'src'\n", "kernels.imports: there is no such key; did you mean 'import'?"),
        (
            TABLE + "zzz = 1\n",
            "kernels.zzz: there is no such key; known here: import, packages, pin, program, targets, toolchain",
        ),
        (TABLE + '"pi\\u001b[1m" = 1\n', r"kernels.'pi\x1b[1m': there is no such key"),
        ("[kernels]\nworkloads = '../w'\n", "kernels.workloads: '../w' is not a folder of the repository"),
        (TABLE + "import = ['src', '/etc']\n", "kernels.import.1: '/etc' is not a folder of the repository"),
        (TABLE + "toolchain = 3\n", "kernels.toolchain: Input should be a valid string"),
        (TABLE + "pin = ''\n", "kernels.pin: "),
    ],
)
def test_wrong_plans(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=r"irdiff\.toml of main is not ") as caught:
        kernel_repository.parse_plan(text.encode("latin-1"), "irdiff.toml of main")
    assert said in str(caught.value)


def test_a_plan_larger_than_any_is_not_parsed() -> None:
    with pytest.raises(UsageError, match="is larger than"):
        kernel_repository.parse_plan(b"#" * (2 << 20), "irdiff.toml")


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
