"""Toolchains: only what irdiff made is removed, wherever the cache folder is."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from irdiff import config as configuration
from irdiff.cli.toolchain_commands import toolchain_group
from irdiff.config import Config
from irdiff.errors import ToolchainError, UsageError
from irdiff.resolve.toolchains import environments

STATE = {"spec": "triton==3.9.0", "version": "3.9.0", "digest": "a" * 64, "made": 0.0}


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """A cache folder that holds other people's toolchains, too."""
    made = configuration.load(cache=tmp_path / "home")
    for name in ("gcc-14", "empty", "with-state"):
        (made.toolchains / name).mkdir(parents=True)
    (made.toolchains / "gcc-14" / "cc").write_text("a compiler")
    (made.toolchains / "with-state" / "irdiff.json").write_text('["of another program"]')
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "file").write_text("mine")
    (made.toolchains / "link").symlink_to(tmp_path / "elsewhere")
    (made.toolchains / "link.lock").touch()
    return made


def files(config: Config) -> dict[str, str]:
    return {str(path): path.read_text() for path in config.cache.parent.rglob("*") if path.is_file()}


def make(name: str, config: Config, *, whole: bool) -> Path:
    path = config.toolchains / name
    path.mkdir()
    (path / "python").write_text("an interpreter")
    (config.toolchains / f"{name}.lock").touch()
    if whole:
        (path / "irdiff.json").write_text(json.dumps(STATE))
        os.utime(path / "irdiff.json", (0, 0))
    return path


def prune(config: Config, *words: str) -> str:
    found = CliRunner().invoke(
        toolchain_group,
        ["prune", "--cache", str(config.cache), *words],
        standalone_mode=False,
        catch_exceptions=False,
    )
    return found.output


def test_prune_removes_old_and_torn_ones_and_nothing_else(config: Config) -> None:
    before = files(config)
    old, torn = make("triton-3.8.0", config, whole=True), make("triton-3.9.0", config, whole=False)
    new = make("triton-3.9.1", config, whole=True)
    os.utime(new / "irdiff.json")
    said = prune(config)
    assert said == "removed triton-3.8.0\nremoved triton-3.9.0\n2 removed, 1 kept\n"
    assert not old.exists()
    assert not torn.exists()
    assert new.exists()
    assert before.items() <= files(config).items()
    assert (config.toolchains / "empty").is_dir()


def test_prune_leaves_a_build_that_is_at_work(config: Config) -> None:
    path = make("triton-3.9.0", config, whole=False)
    with (config.toolchains / "triton-3.9.0.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert prune(config) == "0 removed, 0 kept\n"
    assert path.exists()
    assert prune(config).endswith("1 removed, 0 kept\n")


def test_prune_takes_no_negative_number_of_days(config: Config) -> None:
    make("triton-3.9.1", config, whole=True)
    before = files(config)
    found = CliRunner().invoke(
        toolchain_group, ["prune", "--cache", str(config.cache), "--unused-days", "-1"]
    )
    assert found.exit_code == 2
    assert files(config) == before


@pytest.mark.parametrize("name", ["gcc-14", "empty", "with-state", "link", "absent"])
def test_what_irdiff_did_not_make_is_not_removed(config: Config, name: str) -> None:
    before = files(config)
    words = ["remove", name, "--cache", str(config.cache)]
    with pytest.raises(UsageError, match="no toolchain"):
        CliRunner().invoke(toolchain_group, words, standalone_mode=False, catch_exceptions=False)
    with pytest.raises(ToolchainError, match="not made by irdiff"):
        environments.remove(name, config)
    assert files(config) == before


@pytest.mark.parametrize("name", ["gcc-14", "empty", "with-state", "link"])
def test_a_toolchain_is_not_made_over_somebody_elses_folder(config: Config, name: str) -> None:
    before = files(config)
    with pytest.raises(ToolchainError, match="not made by irdiff") as raised:
        environments.make(name, config, lambda *_: {})
    assert "IRDIFF_CACHE" in raised.value.hint
    assert files(config) == before
