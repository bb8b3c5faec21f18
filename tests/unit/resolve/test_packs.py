"""Packs: their files, the corpora that they make, and what is said where packages cannot be had."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from irdiff import config as configuration
from irdiff.errors import CorpusError, ToolchainError
from irdiff.model import Target, Toolchain
from irdiff.resolve import corpus, packages, packs
from irdiff.resolve.corpus import Corpus, ExtraPackages, Packages
from irdiff.resolve.toolchains import environments
from irdiff.worker import importing

SHIPPED = Path(__file__).parent.parent.parent.parent / "corpus"
PACK = """
summary = "one"
python = "3.10"
packages = ["kernels-of-one==1.2.0", "torch==2.13.0+cpu"]
kernels = ["one_kernels"]
[indexes]
torch = "https://index.invalid/cpu"
"""
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
SM_90 = Target(name="sm_90", title="", backend="cuda", arch=90, warp_size=32, facts={}, sources={})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path / "matmul" / "one.py", "LAUNCHES = {}")
    write(tmp_path / "packs" / "one" / "pack.toml", PACK)
    write(tmp_path / "packs" / "one" / "norms.py", "LAUNCHES = {}")
    write(tmp_path / "packs" / "one" / "_calls.py", "")
    write(tmp_path / "packs" / "two" / "pack.toml", PACK.replace("one", "two"))
    write(tmp_path / "packs" / "two" / "norms.py", "LAUNCHES = {}")
    return tmp_path


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_packs_are_no_families_of_the_corpus(root: Path) -> None:
    before = corpus.load(root)
    assert before.workloads == ("matmul/one",)
    write(root / "packs" / "one" / "norms.py", "LAUNCHES = {1: 1}")
    assert corpus.load(root).digest == before.digest


def test_a_folder_packs_without_a_pack_is_a_family(tmp_path: Path) -> None:
    write(tmp_path / "packs" / "wrap.py", "")
    assert corpus.load(tmp_path).workloads == ("packs/wrap",)


def test_a_pack_takes_the_place_of_the_corpus(root: Path) -> None:
    found = packs.load(root, ["one"])
    assert (found.workloads, found.packs, found.root) == (("one/norms",), ("one",), root / "packs")
    both = packs.load(root, ["two", "one", "two"])
    assert both.workloads == ("one/norms", "two/norms")
    assert packs.load(root, []).digest == corpus.load(root).digest
    write(root / "packs" / "one" / "pack.toml", PACK.replace("1.2.0", "1.2.1"))
    assert packs.load(root, ["one"]).digest != found.digest
    with pytest.raises(CorpusError) as error:
        packs.load(root, ["three"])
    assert error.value.hint == "packs: one, two"


def test_a_case_names_its_pack(root: Path) -> None:
    assert packs.named_by("two/norms:a@sm_90", root) == ("two",)
    assert packs.named_by("matmul/one:a@sm_90", root) == ()


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("==1.2.0", ">=1.2.0", "is no pin"),
        ("==1.2.0", "==1.*", "is no pin"),
        ("kernels-of-one==1.2.0", "triton==3.9.0", "Triton is that of the toolchain"),
        ("\ntorch =", "\njax =", "which is not among"),
        ('summary = "one"', "", "summary"),
        ('summary = "one"', 'summary = "one"\nversion = 1', "version"),
        ('"one"', "one", "Invalid value"),
    ],
)
def test_a_pack_that_is_none(root: Path, old: str, new: str, told: str) -> None:
    write(root / "packs" / "one" / "pack.toml", PACK.replace(old, new))
    with pytest.raises(CorpusError, match=told):
        packs.read(root / "packs" / "one")


def test_shipped_packs_can_be_read_and_share_their_packages() -> None:
    names = packs.names(SHIPPED)
    families = {name.partition("/")[0] for name in corpus.load(SHIPPED).workloads}
    assert names and not families & set(names)
    pins: dict[str, str] = {}
    for name in names:
        for pin in packs.read(SHIPPED / "packs" / name).packages:
            package, _, version = pin.partition("==")
            assert pins.setdefault(package, version) == version, "one torch on disk serves every pack"


# packages


def installed(root: Path, monkeypatch: pytest.MonkeyPatch, uv: object) -> Corpus:
    monkeypatch.setattr(packages, "python_version", lambda *_: (3, 11))
    monkeypatch.setattr(environments, "uv", uv)
    return packs.install(packs.load(root, ["one"]), TOOLCHAIN, configuration.load(cache=root / "cache"))


class Uv:
    """Makes what `uv venv` and `uv pip install` would; what is in `missing` cannot be had."""

    def __init__(self, missing: Sequence[tuple[str, bool]] = ()) -> None:
        self.missing = missing
        self.calls: list[list[str]] = []

    def __call__(self, words: list[str | Path], _log: Path, _config: object) -> None:
        call = [str(word) for word in words]
        self.calls.append(call)
        site = Path(call[-1] if call[0] == "venv" else call[call.index("--python") + 1])
        site = site / "lib" / "python3.11" / "site-packages"
        site.mkdir(parents=True, exist_ok=True)
        for pin in (word for word in call if "==" in word):
            if (pin.partition("==")[0], "--default-index" in call) in self.missing:
                raise ToolchainError("no version of it")
            if pin.startswith("kernels-of"):
                write(site / "one_kernels" / "norm.py", "# kernels")
            record = f"{pin.partition('==')[0]}.py,sha256=1,1\n../../bin/x,sha256=9,1\nx.dist-info/RECORD,,\n"
            write(site / f"{pin}.dist-info" / "RECORD", record)


def test_packages_are_installed_once_and_are_part_of_the_digest(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uv = Uv()
    found = installed(root, monkeypatch, uv)
    packages = found.packages["one"]
    assert [call[0] for call in uv.calls] == ["venv", "pip", "pip"]
    assert all("--no-deps" in call for call in uv.calls[1:])
    assert uv.calls[0][uv.calls[0].index("--python") + 1] == TOOLCHAIN.python
    again = installed(root, monkeypatch, uv)
    assert len(uv.calls) == 3 and again.digest == found.digest != packs.load(root, ["one"]).digest
    write(packages.site / "one_kernels" / "__pycache__" / "norm.pyc", "bytecode")
    assert installed(root, monkeypatch, uv).digest == found.digest
    write(packages.site / "one_kernels" / "norm.py", "# edited")
    assert installed(root, monkeypatch, uv).digest != found.digest


def test_an_index_is_asked_after_those_that_the_user_names(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uv = Uv(missing=[("torch", False)])
    installed(root, monkeypatch, uv)
    assert uv.calls[-1][-3:] == ["--default-index", "https://index.invalid/cpu", "torch==2.13.0+cpu"]


def test_packages_that_cannot_be_had(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ToolchainError) as error:
        installed(root, monkeypatch, Uv(missing=[("torch", False), ("torch", True)]))
    assert error.value.what.startswith("pack one: torch==2.13.0+cpu cannot be installed")
    assert "UV_FIND_LINKS" in error.value.hint and "https://index.invalid/cpu" in error.value.hint
    with pytest.raises(ToolchainError, match="pack one: its packages cannot be installed"):
        installed(root, monkeypatch, Uv(missing=[("kernels-of-one", False)]))
    left = list((root / "cache" / "toolchains").glob("pack-one*/"))
    assert left == [], "nothing half-made stays"


def test_a_python_that_the_packages_do_not_know(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "python_version", lambda *_: (3, 9))
    with pytest.raises(ToolchainError, match=r"need Python 3\.10; triton==9 has 3\.9"):
        packs.install(packs.load(root, ["one"]), TOOLCHAIN, configuration.load(cache=root))


def test_a_corpus_without_packs_needs_nothing(root: Path) -> None:
    plain = corpus.load(root)
    assert packs.install(plain, TOOLCHAIN, configuration.load(cache=root)) is plain
    assert packs.note(plain) == ""
    assert packs.note(packs.load(root, ["one"])) == "packs one: kernels-of-one==1.2.0 torch==2.13.0+cpu"


def test_packages_stand_beside_the_launches_of_their_pack(root: Path) -> None:
    packages = Packages(site=root, imports=(), kernels=("one_kernels",), torch_compile=False, digest="p")
    found = replace(packs.load(root, ["one", "two"]), packages={"one": packages})
    beside = found.beside("one/norms:rms", SM_90)
    assert beside is not None and (beside.packages, beside.target) == (packages, SM_90)
    assert found.beside("two/norms:rms", SM_90) == ExtraPackages(packages=None, target=SM_90), (
        "torch, perhaps"
    )
    assert replace(found, self_contained=True).beside("two/norms:rms", SM_90) is None


def test_kernels_of_packages_go_by_paths_within_their_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("path", "path_hooks"):
        monkeypatch.setattr(sys, name, list(getattr(sys, name)))
    write(tmp_path / "irdiff_kernels" / "__init__.py", "")
    write(tmp_path / "irdiff_kernels" / "norm.py", "def rms(): pass")
    write(tmp_path / "irdiff_other" / "__init__.py", "")
    write(tmp_path / "irdiff_other" / "tools.py", "def f(): pass")
    importing.import_packages(str(tmp_path), ["irdiff_kernels"])
    assert sys.path[-1] == str(tmp_path), "after what the toolchain has"
    kernels = importlib.import_module("irdiff_kernels.norm")
    other = importlib.import_module("irdiff_other.tools")
    assert kernels.rms.__code__.co_filename == "irdiff_kernels/norm.py"
    assert other.f.__code__.co_filename == str(tmp_path / "irdiff_other" / "tools.py")
