"""What a comparison of two revisions looked at: which changed files the compared launches read, in every report."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.programs.evidence import comparing
from tests.programs.evidence.comparing import Compared, Repository

pytestmark = pytest.mark.integration

KERNEL = """\
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, {value}, mask=mask)
"""
WORKLOAD = """\
import triton
from irdiff_corpus import empty, launch, tensor
from kernels.{name} import kernel


def run(x):
    out = empty(x.shape, x.dtype)
    kernel[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)
    return out


LAUNCHES = {{label: launch(run, tensor((4096,), label)) for label in {labels}}}
"""
VALUES = {
    "matmul": "x * 2.0",
    "softmax": "tl.exp(x)",
    "gelu": "tl.sqrt(x)",
    "norm": "x - 1.0",
    "rope": "x + 1.0",
}
UNUSED = "\n\ndef unused():\n    return 1\n"
BASE = {
    "src/kernels/__init__.py": "",
    "src/kernels/table.csv": "2.0\n",
    "src/kernels/unread.csv": "2.0\n",
    "src/kernels/host.py": "def size():\n    return 4096\n",
    **{f"src/kernels/{name}.py": KERNEL.format(value=value) for name, value in VALUES.items()},
    "bench/ops/matmul.py": WORKLOAD.format(name="matmul", labels='("fp32", "fp16")'),
    "bench/ops/softmax.py": WORKLOAD.format(name="softmax", labels='("fp32",)').replace(
        "def run", "import kernels.host\n\n\ndef run"
    ),
    "bench/ops/gelu.py": WORKLOAD.format(name="gelu", labels='("fp32",)').replace(
        "def run", 'with open("src/kernels/table.csv") as file:\n    file.read()\n\n\ndef run'
    ),
}
UNREAD = "no launch reads what changed"


class Reached:
    """A comparison of BASE with an edit of some of its files, in every form that a user sees."""

    def __init__(self, edited: Mapping[str, str], folder: Path, cache: Path) -> None:
        repo = Repository.new(folder / "kernels")
        repo.commit("base", BASE)
        repo.commit("head", {**BASE, **edited})
        page = folder / "report.html"
        self.compared: Compared = comparing.compare_commits(
            repo, "base", "head", "--html", str(page), cache=comparing.new_cache(folder / "cache", cache)
        )
        assert self.compared.run is not None, self.compared.stderr
        visible = re.sub(r"<[^>]*>", "", page.read_text(encoding="utf-8"))
        self.reports = {
            "terminal": _one_line(self.compared.stdout),
            "markdown": _one_line(self.compared.markdown.replace("`", "").replace("\\", "")),
            "html": _one_line(html.unescape(visible)),
        }

    def all_say(self, words: str) -> None:
        for name, text in self.reports.items():
            assert words in text, name

    def verdicts(self) -> dict[str, str]:
        return {case["id"].split("@")[0]: case["verdict"] for case in self.compared.cases()}


def _one_line(text: str) -> str:
    return " ".join(text.split())


def changed(name: str) -> dict[str, str]:
    return {f"src/kernels/{name}.py": KERNEL.format(value=VALUES[name] + " - 0.5")}


def test_some_files_are_read_and_some_are_not(shared_cache: Path, tmp_path: Path) -> None:
    edited = {path: text for name in VALUES for path, text in changed(name).items()}
    found = Reached(edited, tmp_path, shared_cache)
    assert set(found.verdicts().values()) == {"changed"}
    found.all_say(
        "changed files: 5; 3 are read by 4 cases; "
        "no launch runs kernel (src/kernels/norm.py), kernel (src/kernels/rope.py), which changed: not compared; "
        "src/kernels/norm.py and src/kernels/rope.py are read by none: not compared"
    )
    assert UNREAD not in found.compared.first_line()


@pytest.mark.parametrize(
    "edited",
    [
        {**changed("norm"), **changed("rope")},
        changed("norm"),
        {"src/kernels/unread.csv": "3.0\n", **changed("rope")},
        {"src/kernels/fresh.py": KERNEL.format(value="x")},
    ],
    ids=["kernels", "one-kernel", "kernel-and-data", "new-kernel"],
)
def test_no_file_is_read(edited: dict[str, str], shared_cache: Path, tmp_path: Path) -> None:
    found = Reached(edited, tmp_path, shared_cache)
    assert set(found.verdicts().values()) == {"unchanged"}
    assert UNREAD in found.compared.first_line()
    assert "is the same" not in found.compared.first_line()
    found.all_say(UNREAD)
    found.all_say(f"changed files: {len(edited)}; ")
    for path in edited:
        found.all_say(path)


@pytest.mark.parametrize(
    ("edited", "cases"),
    [
        ({"src/kernels/matmul.py": BASE["src/kernels/matmul.py"] + UNUSED}, 2),
        ({"src/kernels/host.py": "def size():\n    return 8192\n"}, 1),
        ({"src/kernels/table.csv": "3.0\n"}, 1),
        ({"bench/ops/matmul.py": BASE["bench/ops/matmul.py"] + UNUSED}, 2),
    ],
    ids=["kernel", "host", "data", "workload"],
)
def test_what_is_read_and_does_not_matter(
    edited: dict[str, str], cases: int, shared_cache: Path, tmp_path: Path
) -> None:
    found = Reached(edited, tmp_path, shared_cache)
    assert set(found.verdicts().values()) == {"unchanged"}
    assert "; launches read 1 changed file." in found.compared.first_line()
    assert UNREAD not in found.compared.first_line()
    found.all_say("changed files: 1; ")
    found.all_say(f"read by {cases} case{'s' if cases > 1 else ''}")


def test_a_second_run_gives_the_same_answer(shared_cache: Path, tmp_path: Path) -> None:
    """It takes its compilations from the store."""
    repo = Repository.new(tmp_path / "kernels")
    repo.commit("base", BASE)
    repo.commit("head", {**BASE, **changed("matmul"), **changed("norm")})
    cache = comparing.new_cache(tmp_path / "cache", shared_cache)
    said = [comparing.compare_commits(repo, "base", "head", cache=cache) for _ in range(2)]
    for found in said:
        assert "changed files: 2; " in found.stdout
        assert "src/kernels/norm.py" in found.stdout
    first, second = (re.findall("changed files: .*", found.stdout) for found in said)
    assert first == second


def test_a_link_that_leads_elsewhere_is_read(shared_cache: Path, tmp_path: Path) -> None:
    workload = WORKLOAD.format(name="gelu", labels='("fp32",)').replace(
        "def run", 'with open("src/kernels/chosen.csv") as file:\n    file.read()\n\n\ndef run'
    )
    files = {"src/kernels/one.csv": "1.0\n", "src/kernels/two.csv": "2.0\n", "bench/ops/gelu.py": workload}
    repo = Repository.new(tmp_path / "kernels")
    for name, chosen in (("base", "one.csv"), ("head", "two.csv")):
        repo.commit(name, {**BASE, **files, "src/kernels/chosen.csv": comparing.LINK + chosen})
    cache = comparing.new_cache(tmp_path / "cache", shared_cache)
    compared = comparing.compare_commits(repo, "base", "head", cache=cache)
    assert compared.run is not None, compared.stderr
    assert compared.run["reach"]["files"] == [
        {
            "path": "src/kernels/chosen.csv",
            "change": "changed",
            "compiled_by": 0,
            "read_by": 1,
            "not_run": [],
        }
    ]
