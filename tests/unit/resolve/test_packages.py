"""Packages next to a TOOLCHAIN, and packs: what is asked for, from where, and what it is part of."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from irdiff import config as configuration
from irdiff.errors import CorpusError, ToolchainError, UsageError
from irdiff.resolve import corpus, extra_packages, packs
from irdiff.resolve.corpus import Corpus
from irdiff.resolve.toolchains import environments
from tests.texts import text_of
from tests.unit import runs
from tests.unit.golden import golden

PACK = text_of("packs/pack.toml")
CORPUS = Corpus(root=Path("/c"), workloads=("run/a", "run/b", "more/c", "alone"), digest="c")
TOOLCHAIN = runs.side("triton==9").toolchain


@dataclass
class Uv:
    """Makes what `uv venv` and `uv pip install` would, unless that needs more than it has."""

    fails: Callable[[list[str]], bool] = lambda _: False
    calls: list[list[str]] = field(default_factory=list)

    def __call__(self, words, log, _config):
        call = [str(word) for word in words]
        self.calls.append(call)
        folder = Path(call[-1] if call[0] == "venv" else call[call.index("--python") + 1])
        site = folder / "lib" / "python3.11" / "site-packages"
        site.mkdir(parents=True, exist_ok=True)
        if self.fails(call):
            raise ToolchainError("no version of it", log_path=str(log))
        for pin in (word for word in call if "==" in word):
            if pin.startswith("kernels-of"):
                write(site / "one_kernels" / "norm.py", "# kernels")
            record = f"{pin}.py,sha256=1,1\n../../bin/x,sha256=9,1\nx.dist-info/RECORD,,\n"
            write(site / f"{pin}.dist-info" / "RECORD", record)

    @property
    def pips(self):
        return [call for call in self.calls if call[0] == "pip"]


@pytest.fixture
def uv(monkeypatch):
    made = Uv()
    monkeypatch.setattr(environments, "uv", made)
    monkeypatch.setattr(extra_packages, "python_version", lambda *_: (3, 11))
    return made


def config(tmp_path, **variables):
    return replace(configuration.load(cache=tmp_path / "cache"), tool_environment=variables)


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_requirements():
    rows = golden("kernel-repositories")
    for row in rows["requirement"]:
        text = row["text"]
        assert (extra_packages.name_of(text), extra_packages.is_open(text)) == (row["name"], row["open"])
    for text in rows["no_requirement"]:
        with pytest.raises(UsageError):
            extra_packages.name_of(text)


def test_packages_are_installed_once_for_every_family_and_are_part_of_the_digest(tmp_path, uv):
    here = config(tmp_path)
    assert extra_packages.added_to(CORPUS, TOOLCHAIN, (), here) is CORPUS
    first = extra_packages.added_to(CORPUS, TOOLCHAIN, ("torch==2", "einops"), here)
    again = extra_packages.added_to(CORPUS, TOOLCHAIN, ("einops", "torch==2"), here)
    assert [call[0] for call in uv.calls] == ["venv", "pip"]
    assert set(first.packages) == {"run", "more", "alone"} and first == again
    alone, below = (first.extra_packages(name, runs.target()) for name in ("alone", "alone:x/k"))
    assert alone == below and alone.packages is not None
    other = extra_packages.added_to(CORPUS, TOOLCHAIN, ("torch==3",), here)
    assert len({CORPUS.digest, first.digest, other.digest}) == 3
    excluded = Path(uv.pips[0][uv.pips[0].index("--excludes") + 1]).read_text().split()
    assert {"triton", "pytorch-triton"} <= {*excluded}


@pytest.fixture
def root(tmp_path):
    write(tmp_path / "matmul" / "one.py", "LAUNCHES = {}")
    write(tmp_path / "packs" / "one" / "_calls.py", "")
    write(tmp_path / "packs" / "_models.py", "")
    for name in ("one", "two"):
        write(tmp_path / "packs" / name / "pack.toml", PACK.replace("one", name))
        write(tmp_path / "packs" / name / "norms.py", "LAUNCHES = {}")
    return tmp_path


def test_packs_are_no_families_of_the_corpus_and_take_its_place(root):
    before, found = corpus.load(root), packs.load(root, ["one"])
    assert before.workloads == ("matmul/one",)
    assert (found.workloads, found.packs, found.root) == (("one/norms",), ("one",), root / "packs")
    assert packs.load(root, ["two", "one", "two"]).workloads == ("one/norms", "two/norms")
    assert packs.load(root, []).digest == before.digest
    assert packs.load(root, ["all"]).workloads == ("one/norms", "two/norms")
    assert packs.note(found) == "packs one (kernels-of-one==1.2.0) with torch==2.13.0+cpu"
    assert packs.projects(packs.note(packs.load(root, ["all"]))) == {
        name: (f"kernels-of-{name}", "1.2.0") for name in ("one", "two")
    }
    named = [packs.named_by(f"{case}:a@sm_90", root) for case in ("two/norms", "matmul/one")]
    assert named == [("two",), ()]
    with pytest.raises(CorpusError) as error:
        packs.load(root, ["three"])
    assert error.value.hint == "packs: one, two"
    write(root / "packs" / "one" / "pack.toml", PACK.replace("1.2.0", "1.2.1"))
    write(root / "packs" / "two" / "norms.py", "LAUNCHES = {1: 1}")
    changed = packs.load(root, ["one"]).digest
    write(root / "packs" / "_models.py", "MODELS = {}")  # which packs share
    assert len({found.digest, changed, packs.load(root, ["one"]).digest}) == 3
    assert corpus.load(root).digest == before.digest
    for name in ("one", "two"):
        (root / "packs" / name / "pack.toml").unlink()
    assert "packs/one/norms" in corpus.load(root).workloads


def installed(root, name="one"):
    return packs.install(packs.load(root, [name] if name else []), TOOLCHAIN, config(root))


def test_the_packages_of_a_pack(root, uv):
    """Installed once, without what they ask for; the content of the kernels is part of the digest."""
    found = installed(root)
    assert installed(root).digest == found.digest != packs.load(root, ["one"]).digest
    assert [call[0] for call in uv.calls] == ["venv", "pip"]
    assert "--no-deps" in uv.pips[0] and "--torch-backend" in uv.pips[0]
    assert uv.calls[0][uv.calls[0].index("--python") + 1] == TOOLCHAIN.python
    kernels = found.packages["one"].site / "one_kernels"
    write(kernels / "__pycache__" / "norm.pyc", "bytecode")
    assert installed(root).digest == found.digest
    write(kernels / "norm.py", "# edited")
    assert installed(root).digest != found.digest
    assert installed(root, "") == corpus.load(root)
