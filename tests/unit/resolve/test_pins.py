from __future__ import annotations

from pathlib import Path

import pytest

from irdiff.resolve import pins

LOCK = (
    '[[package]]\nname = "torch"\nversion = "2.13.0+cpu"\n\n[[package]]\nname = "triton"\nversion = "3.9.0"\n'
)


@pytest.mark.parametrize(
    ("name", "text", "package", "version"),
    [
        ("uv.lock", LOCK, "torch", "2.13.0+cpu"),
        ("uv.lock", LOCK, "einops", None),
        ("requirements.txt", "flash_attn==2.8\ntorch-geometric==1\n", "flash-attn", "2.8"),
        ("requirements.txt", "torch-geometric==1\n", "torch", None),
    ],
)
def test_any_package(name: str, text: str, package: str, version: str | None) -> None:
    assert pins.version(name, text.encode(), package) == version


FORKS = "".join(
    f"""[[package]]
name = "triton"
version = "{version}"
resolution-markers = ["sys_platform {operator} 'linux'"]
"""
    for version, operator in (("3.9.0", "=="), ("3.2.0", "!="))
)


@pytest.mark.parametrize(
    ("name", "text", "version"),
    [
        ("requirements.txt", "Triton==3.9.0\n", "3.9.0"),
        ("requirements.txt", "triton==3.9.0 ; sys_platform == 'linux'\n", "3.9.0"),
        ("requirements.txt", "triton==3.8.0 ; sys_platform == 'win32'\ntriton==3.9.0\n", "3.9.0"),
        ("requirements.txt", "# triton==3.8.0\ntriton==3.9.0 \\\n    --hash=sha256:00\n", "3.9.0"),
        ("requirements.txt", "-r requirements/base.txt\n", "3.7.1"),
        ("requirements.txt", "-c missing.txt\n", None),
        ("requirements.txt", "triton>=3.8,==3.9.*\n", None),
        ("uv.lock", FORKS, "3.9.0"),
        (
            "pdm.lock",
            '[[package]]\nname = "triton"\nversion = "3.9.0"\nmarker = "sys_platform == \'win32\'"\n',
            None,
        ),
    ],
    ids=[
        "capital",
        "marker",
        "two markers",
        "comment",
        "included",
        "missing",
        "range",
        "forks",
        "locked marker",
    ],
)
def test_what_the_tools_that_write_pins_mean(name: str, text: str, version: str | None) -> None:
    files = {"requirements/base.txt": b"-r ../requirements.txt\ntriton==3.7.1\n"}
    assert pins.version(name, text.encode(), read=files.get) == version


def test_the_environment_of_a_project(tmp_path: Path) -> None:
    assert pins.interpreter(tmp_path) is None and pins.interpreter(None) is None
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.touch()
    (tmp_path / ".venv/lib/python3.11/site-packages/flash_attn-2.8.1.dist-info").mkdir(parents=True)
    assert pins.interpreter(tmp_path) == python
    assert pins.installed(tmp_path, "flash-attn") == "2.8.1"
    assert pins.installed(tmp_path, "torch") is None
