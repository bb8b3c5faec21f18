"""Packages beside a toolchain: which are asked for, from where, and what they are part of."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from irdiff import config as configuration
from irdiff.config import Config
from irdiff.errors import ToolchainError, UsageError
from irdiff.model import Toolchain
from irdiff.resolve import packages
from irdiff.resolve.corpus import Corpus
from irdiff.resolve.toolchains import environments

TOOLCHAIN = Toolchain(
    spec="triton==9",
    version="9",
    digest="d",
    path="/t",
    python="/t/python",
    root="/t/triton",
    runtime={},
    programs={},
    notes=(),
)
CORPUS = Corpus(root=Path("/c"), workloads=("run/a", "run/b", "more/c"), digest="c")


class Uv:
    """Stands for uv: notes what it is told, and makes what an installation leaves."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self.failing: list[str] = []

    def __call__(self, words: list[str | Path], log: Path, config: Config) -> None:
        self.calls.append([str(word) for word in words])
        if words[0] == "venv":
            (Path(words[-1]) / "lib" / "python3.11" / "site-packages" / "a.dist-info").mkdir(parents=True)
        elif any(word in self.failing for word in self.calls[-1]) or "everything" in self.failing:
            raise ToolchainError("no such package", log_path=str(log))
        elif words[0] == "pip":
            record = next(Path(words[words.index("--python") + 1]).glob("lib/*/*/a.dist-info")) / "RECORD"
            record.write_text(f"a/x.py,sha256={self.calls[-1][-1]},1\n")


@pytest.fixture
def uv(monkeypatch: pytest.MonkeyPatch) -> Uv:
    made = Uv()
    monkeypatch.setattr(environments, "uv", made)
    monkeypatch.setattr(packages, "python_version", lambda *_: (3, 11))
    return made


def config(tmp_path: Path, **variables: str) -> Config:
    return replace(configuration.load(cache=tmp_path), tool_environment=variables)


@pytest.mark.parametrize(
    ("text", "name", "is_open"),
    [
        ("torch", "torch", True),
        ("Flash_Attn [cuda]", "flash-attn", True),
        ("torch==2.13.0+cpu", "torch", False),
        ("einops >=0.7,<1", "einops", False),
        ("mine @ file:///w/mine.whl", "mine", False),
    ],
)
def test_requirements(text: str, name: str, is_open: bool) -> None:
    assert (packages.name_of(text), packages.is_open(text)) == (name, is_open)


@pytest.mark.parametrize(
    "text", ["", "tri ton", "--index-url=x", "-r file", "triton", "pytorch_triton==3", "a;b"]
)
def test_what_is_no_package(text: str) -> None:
    with pytest.raises(UsageError):
        packages.name_of(text)


def test_they_are_installed_once_for_every_family_and_are_part_of_the_digest(tmp_path: Path, uv: Uv) -> None:
    first = packages.beside(CORPUS, TOOLCHAIN, ("torch==2", "einops"), config(tmp_path))
    again = packages.beside(CORPUS, TOOLCHAIN, ("einops", "torch==2"), config(tmp_path))
    assert [call[0] for call in uv.calls] == ["venv", "pip"]
    assert uv.calls[1][-4:] == ["--torch-backend", "cpu", "einops", "torch==2"]
    assert set(first.packages) == {"run", "more"} and first == again
    other = packages.beside(CORPUS, TOOLCHAIN, ("torch==3",), config(tmp_path))
    assert len({CORPUS.digest, first.digest, other.digest}) == 3
    excluded = Path(uv.calls[1][uv.calls[1].index("--excludes") + 1]).read_text().split()
    assert "triton" in excluded and "pytorch-triton" in excluded


def test_nothing_is_installed_that_nobody_asks_for(tmp_path: Path, uv: Uv) -> None:
    assert packages.beside(CORPUS, TOOLCHAIN, (), config(tmp_path)) is CORPUS
    assert not uv.calls


@pytest.mark.parametrize(
    ("variables", "ways"),
    [
        ({}, [True, False]),
        ({"PIP_FIND_LINKS": "/wheels"}, [False, True]),
        ({"UV_TORCH_BACKEND": "cu126"}, [False]),
    ],
)
def test_where_torch_is_looked_for(
    tmp_path: Path, uv: Uv, variables: dict[str, str], ways: list[bool]
) -> None:
    """Its index of CPU builds first, unless a user's uv or pip is told where builds lie."""
    uv.failing = ["everything"]
    with pytest.raises(ToolchainError, match="the packages torch cannot be installed") as caught:
        packages.beside(CORPUS, TOOLCHAIN, ("torch",), config(tmp_path, **variables))
    assert ["--torch-backend" in call for call in uv.calls if call[0] == "pip"] == ways
    assert "UV_FIND_LINKS" in caught.value.hint and caught.value.log_path


def test_uv_is_told_what_pip_is_told(tmp_path: Path) -> None:
    pips = {"PIP_FIND_LINKS": "/a /b", "PIP_INDEX_URL": "https://i.invalid", "VIRTUAL_ENV": "/v"}
    told = environments.uv_environment(config(tmp_path, **pips, UV_FIND_LINKS="/own"))
    assert (told["UV_FIND_LINKS"], told["UV_DEFAULT_INDEX"]) == ("/own", "https://i.invalid")
    assert "VIRTUAL_ENV" not in told
    assert environments.uv_environment(config(tmp_path, **pips))["UV_FIND_LINKS"] == "/a,/b"
