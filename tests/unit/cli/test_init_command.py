"""`irdiff init` writes no package that nobody named: the next comparison would install it."""

import tomllib
from pathlib import Path

import pytest

from irdiff.cli.init_command import init_command
from irdiff.gate import policy
from tests.unit.typed import typed

KERNEL = "import triton\nimport einops\n\n\n@triton.jit\ndef copy(x, y):\n    pass\n"
PROGRAM = "import numpy\nimport torch\nfrom lib import kernels\n"


@pytest.fixture
def repository(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for path, text in {"lib/__init__.py": "", "lib/kernels.py": KERNEL, "bench/run.py": PROGRAM}.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


def written(repository, *words):
    _, printed = typed(init_command, "bench/run.py", *words)
    text = (repository / "irdiff.toml").read_text()
    return tomllib.loads(text)["kernels"], text, printed


def test_a_module_that_no_requirements_name_stands_in_a_comment_and_in_what_is_printed(repository):
    table, text, printed = written(repository)
    assert "packages" not in table
    assert "# They also import einops, numpy, torch." in text
    assert "imports einops, numpy, torch" in printed


@pytest.mark.parametrize(
    ("place", "content"),
    [
        ("pyproject.toml", '[project]\ndependencies = ["torch>=2.5", "einops"]\n'),
        ("requirements.txt", "torch\neinops>=0.8\n"),
        ("requirements-dev.txt", "torch\neinops>=0.8\n"),
        ("requirements/gpu.txt", "torch\neinops>=0.8\n"),
    ],
)
def test_a_package_that_the_repository_requires_is_installed(repository, place, content):
    (repository / place).parent.mkdir(exist_ok=True)
    (repository / place).write_text(content)
    table, text, _ = written(repository)
    assert table["packages"] == ["einops", "torch"]
    assert "# They also import numpy." in text


def test_an_exact_requirement_without_a_pin_of_triton_gives_the_version(repository):
    (repository / "requirements.txt").write_text("torch==2.13.0\neinops\n")
    assert written(repository)[0]["packages"] == ["einops", "torch==2.13.0"]


def test_a_package_that_the_user_names_or_has_in_the_environment_is_installed(repository):
    (repository / ".venv/lib/python3.11/site-packages/einops-0.8.1.dist-info").mkdir(parents=True)
    table, text, printed = written(repository, "--with", "torch==2.13.0", "--with", "numpy")
    assert table["packages"] == ["einops==0.8.1", "numpy", "torch==2.13.0"]
    assert "also import" not in text + printed


def test_pytest_comes_with_a_program_that_it_runs(repository):
    (repository / "bench/run.py").write_text(f"import pytest\n{PROGRAM}")
    typed(init_command, "pytest bench/run.py")
    assert "# They also import einops, numpy, torch." in (repository / "irdiff.toml").read_text()


def test_modules_of_the_repository_and_optional_ones_are_no_packages(repository):
    (repository / "lib/tools").mkdir()
    (repository / "lib/tools/__init__.py").touch()
    (repository / "lib/tools/chip_table.py").touch()
    optional = 'if importlib.util.find_spec("vendor"):\n    import vendor\n'
    (repository / "lib/__init__.py").write_text(f"import sys\n{optional}from chip_table import WARPS\n")
    assert "# They also import einops, numpy, torch." in written(repository)[1]


@pytest.mark.parametrize(
    ("compared", "required"), [(["gfx950"], ["gfx950"]), (["gfx950", "sm_90"], ["sm_90"])]
)
def test_the_policy_requires_no_target_that_the_repository_does_not_compare(repository, compared, required):
    words = [word for name in compared for word in ("--target", name)]
    written(repository, *words)
    typed(init_command, "--github", "--action", f"o/irdiff@{'a' * 40}")
    (coverage,) = [
        rule for rule in policy.load(repository / "irdiff-policy.toml").rule if rule.id == "coverage"
    ]
    own = policy.load(Path(__file__).parents[3] / "reports" / "irdiff-policy.toml")
    assert coverage in policy.for_targets(own, compared).rule
    assert list(coverage.required_targets) == required
