"""Two revisions of Triton that make one compiler: answered from the trees, on an empty cache."""

import json
from pathlib import Path

from tests.programs.checkouts import commit, edit, new_repository, write

ROOT = Path(__file__).parents[3]


def test_documents_and_tests_alone_end_at_once(irdiff, triton_repository, tmp_path):
    write(triton_repository, {f"docs/{n}.md": "text\n" for n in range(9)})
    write(triton_repository, {f"python/test/unit/test_{n}.py": "" for n in range(5)})
    commit(triton_repository, "Documents and tests")
    empty, out = tmp_path / "empty-cache", tmp_path / "run"
    words = ("compare", "HEAD~1", "HEAD", "--out", out, "--exit-code")
    done = irdiff(*words, cwd=triton_repository, IRDIFF_CACHE=str(empty))
    assert done.code == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "identical compilers: nothing can change (14 files looked at)"
    assert "14 files differ: documents (9), tests (5)" in done.stdout
    assert not (empty / "toolchains").exists()
    assert done.verdicts() == {}
    assert len(done.run["edited"]["files"]) == 14
    # what else is made of such a run
    page = tmp_path / "page.html"
    assert irdiff("report", str(out), "--html", str(page)).code == 0
    assert "identical compilers" in page.read_text()
    policy = ROOT / "reports" / "irdiff-policy.toml"
    passed = irdiff("gate", str(out), "--policy", str(policy))
    assert passed.code == 0
    assert "note     identical compilers: nothing can change" in passed.stdout
    pull = ("--repo", "o/n", "--pr", "7", "--check", "--commit", "a" * 40)
    assert "would publish a check: success" in irdiff("comment", str(out), *pull, "--dry-run").stdout
    forged = json.loads((out / "run.json").read_text())
    forged["edited"]["identical"] = False
    (out / "run.json").write_text(json.dumps(forged))
    assert irdiff("gate", str(out), "--policy", str(policy)).code == 1, "a run without cases holds no release"


def test_what_differs_is_said_before_anything_is_built(irdiff, triton_repository):
    edit(triton_repository, "python/triton/language/semantic.py", "class ", "# a comment\n\nclass ")
    write(triton_repository, {"lib/stand_in.cpp": "int other;\n", "docs/index.md": ""})
    commit(triton_repository, "Frontend and native code")
    done = irdiff("compare", "HEAD~1", "HEAD", "--no-build", cwd=triton_repository)
    assert done.code == 3
    said = done.stderr.splitlines()
    assert said[0] == (
        "3 files differ: Python (python/triton/language/semantic.py), native code (lib/stand_in.cpp), "
        "documents (1)"
    )
    assert said[1] == "native code differs: each side needs a native build of its own"


def test_a_repository_of_kernels_of_which_no_file_differs(irdiff, tmp_path):
    """Nothing is installed for it; any file may be one that a workload reads."""
    repository = new_repository(tmp_path / "kernels")
    toml = '[kernels]\nworkloads = ".bench"\n'
    write(repository, {"irdiff.toml": toml, ".bench/a/b.py": "", "kernels.py": ""})
    commit(repository, "Kernels")
    commit(repository, "Nothing")
    empty = str(tmp_path / "empty-cache")
    done = irdiff("compare", "HEAD~1", "HEAD", cwd=repository, IRDIFF_CACHE=empty)
    assert done.code == 0, done.stderr
    assert done.stdout.startswith("no file differs: nothing was compared\n")
    write(repository, {"LICENSE": "what a workload could read\n"})
    commit(repository, "A document")
    done = irdiff("compare", "HEAD~1", "HEAD", cwd=repository, IRDIFF_CACHE=empty)
    assert done.code == 2
    assert "does not say which Triton to use" in done.stderr
