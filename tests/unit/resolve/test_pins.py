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


def test_the_environment_of_a_project(tmp_path: Path) -> None:
    assert pins.interpreter(tmp_path) is None and pins.interpreter(None) is None
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.touch()
    (tmp_path / ".venv/lib/python3.11/site-packages/flash_attn-2.8.1.dist-info").mkdir(parents=True)
    assert pins.interpreter(tmp_path) == python
    assert pins.installed(tmp_path, "flash-attn") == "2.8.1"
    assert pins.installed(tmp_path, "torch") is None
