"""What a comparison of two revisions looked at: which changed files the compared launches read, in every report."""

import html
import re

import pytest

from tests.programs.evidence import comparing
from tests.programs.evidence.comparing import Repository
from tests.texts import text_of

KERNEL = text_of("reach/kernel.py")
WORKLOAD = text_of("reach/workload.py.template")
VALUES = {"matmul": "x * 2.0", "softmax": "tl.exp(x)", "gelu": "tl.sqrt(x)", "norm": "x - 1.0"}
VALUES["rope"] = "x + 1.0"
UNUSED = "\n\ndef unused():\n    return 1\n"


def reading(name, lines):
    return WORKLOAD.format(name=name, labels='("fp32",)').replace("def run", f"{lines}\n\ndef run")


BASE = {
    "src/kernels/__init__.py": "",
    "src/kernels/table.csv": "2.0\n",
    "src/kernels/unread.csv": "2.0\n",
    "src/kernels/host.py": "def size():\n    return 4096\n",
    **{f"src/kernels/{name}.py": KERNEL.format(value=value) for name, value in VALUES.items()},
    "bench/ops/matmul.py": WORKLOAD.format(name="matmul", labels='("fp32", "fp16")'),
    "bench/ops/softmax.py": reading("softmax", "import kernels.host\n"),
    "bench/ops/gelu.py": reading("gelu", 'with open("src/kernels/table.csv") as file:\n    file.read()\n'),
}
UNREAD = "this run says nothing about the edit"


class Reached:
    """A comparison of BASE with an edit of some of its files, in every form that a user sees."""

    def __init__(self, edited, folder, cache):
        repo = Repository.new(folder / "kernels")
        repo.commit("base", BASE)
        repo.commit("head", {**BASE, **edited})
        page = folder / "report.html"
        self.again = lambda: comparing.compare_commits(repo, "base", "head", cache=cache)
        found = comparing.compare_commits(repo, "base", "head", "--html", str(page), cache=cache)
        assert found.run is not None, found.stderr
        visible = re.sub(r"<[^>]*>", "", page.read_text(encoding="utf-8"))
        self.first_line = found.first_line()
        self.reports = {
            "terminal": found.stdout,
            "markdown": found.markdown.replace("`", "").replace("\\", ""),
            "html": html.unescape(visible),
        }
        self.verdicts = {case["verdict"] for case in found.cases()}
        self.files = {row["path"]: row for row in found.run["reach"]["files"]}

    def all_say(self, words):
        for name, text in self.reports.items():
            assert words in " ".join(text.split()), name


def changed(name):
    return {f"src/kernels/{name}.py": KERNEL.format(value=VALUES[name] + " - 0.5")}


def test_some_files_are_read_and_some_are_not(cache, tmp_path):
    """A second run, which takes its compilations from the store, says the same."""
    found = Reached({path: text for name in VALUES for path, text in changed(name).items()}, tmp_path, cache)
    assert found.verdicts == {"changed"}
    read_by = {path.rpartition("/")[2]: row["read_by"] for path, row in found.files.items()}
    assert read_by == {"matmul.py": 2, "softmax.py": 1, "gelu.py": 1, "norm.py": 0, "rope.py": 0}
    unread = [row["not_run"] for row in found.files.values() if not row["read_by"]]
    assert unread == [["kernel"], ["kernel"]]
    assert "2 new or changed functions are run by no launch: kernel" in found.first_line
    for name in ("norm", "rope"):
        found.all_say(f"src/kernels/{name}.py")
    assert UNREAD not in found.first_line
    again = found.again()
    assert again.run and list(found.files.values()) == again.run["reach"]["files"]


@pytest.mark.parametrize(
    "edited",
    [changed("norm"), {"src/kernels/unread.csv": "3\n", "src/kernels/fresh.py": KERNEL, **changed("rope")}],
    ids=["one-kernel", "kernel-data-and-new-file"],
)
def test_no_file_is_read(edited, cache, tmp_path):
    found = Reached(edited, tmp_path, cache)
    assert found.verdicts == {"unchanged"}
    assert UNREAD in found.first_line
    assert "is the same" not in found.first_line
    assert {path: row["read_by"] for path, row in found.files.items()} == dict.fromkeys(edited, 0)
    for words in (UNREAD, *edited):
        found.all_say(words)


def test_what_is_read_and_does_not_matter(cache, tmp_path):
    read_by = {f"src/kernels/{name}": 1 for name in ("softmax.py", "host.py", "table.csv")}
    read_by["bench/ops/matmul.py"] = 2
    more = {path: "3.0\n" if path.endswith(".csv") else UNUSED for path in read_by}
    found = Reached({path: BASE[path] + text for path, text in more.items()}, tmp_path, cache)
    assert found.verdicts == {"unchanged"}
    assert "launches read 4 changed files" in found.first_line
    assert UNREAD not in found.first_line
    assert {path: row["read_by"] for path, row in found.files.items()} == read_by


def test_a_file_whose_name_is_no_utf_8(cache, tmp_path):
    found = Reached({"src/kernels/table\udcff.csv": "3\n"}, tmp_path, cache)
    assert [*found.files] == [r"src/kernels/table\xff.csv"]
    assert r"src/kernels/table\xff.csv" in found.reports["terminal"]
