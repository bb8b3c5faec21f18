"""A repository of kernels: what its commits do to them, and to the compiler that they pin."""

import pytest

from irdiff.resolve import sides
from irdiff.store import Store
from tests.programs.checkouts import commit, edit, git, new_repository, write
from tests.texts import text_of

PROJECT = '[kernels]\nworkloads = "bench/irdiff"\nimport = ["src"]\npin = "requirements.txt"\n'
RELEASE = "triton==3.9.0"
ACTIVATIONS = "src/mykernels/activations.py"
KERNEL = text_of("kernel_commits/kernel.py.template")
WORKLOAD = text_of("kernel_commits/workload.py.template")
HEADER = "import triton\nimport triton.language as tl\n\n\n"


def kernel(name, expression):
    return KERNEL.format(name=name, expression=expression)


def workload(module, name):
    return WORKLOAD.format(module=module, name=name)


@pytest.fixture
def kernels(tmp_path):
    repo = new_repository(tmp_path / "kernels é")
    expressions = {"relu": "tl.maximum(x, 0.0)", "square": "x * x"}
    expressions["gate"] = "x * tl.sigmoid(x) + tl.exp(-x * x) * 0.5 - tl.abs(x)"
    activations = "\n\n".join(kernel(name, text) for name, text in expressions.items())
    files = {
        "irdiff.toml": PROJECT,
        "requirements.txt": "numpy\ntriton==3.9.0  # pinned\n",
        "src/mykernels/__init__.py": "",
        "src/mykernels/activations.py": HEADER + activations,
        "src/mykernels/old.py": HEADER + kernel("doomed", "tl.sin(x) + tl.cos(x * 3.0)"),
        "bench/irdiff/old/doomed.py": workload("old", "doomed"),
    }
    workloads = {f"bench/irdiff/activations/{name}.py": workload("activations", name) for name in expressions}
    write(repo, {**files, **workloads})
    commit(repo, "Kernels")
    return repo


def verdicts(result):
    return {case["id"].partition("@")[0]: case["verdict"] for case in result.run["cases"]}


def test_renamed_edited_untouched_added_removed(irdiff, kernels):
    edit(kernels, ACTIVATIONS, "x * x\n", "x * x + 1.0\n")
    edit(kernels, ACTIVATIONS, "def gate(", "def swish_gate(")
    git(kernels, "mv", "bench/irdiff/activations/gate.py", "bench/irdiff/activations/swish_gate.py")
    write(kernels, {"bench/irdiff/activations/swish_gate.py": workload("activations", "swish_gate")})
    git(kernels, "rm", "-q", "src/mykernels/old.py", "bench/irdiff/old/doomed.py")
    fresh = HEADER + kernel("fresh", "tl.sqrt(tl.log(x + 2.0))")
    write(kernels, {"src/mykernels/fresh.py": fresh})
    write(kernels, {"bench/irdiff/fresh/fresh.py": workload("fresh", "fresh")})
    commit(kernels, "Everything at once")
    result = irdiff("compare", "HEAD~1", "HEAD", "--target", "sm_90", cwd=kernels)
    expected = {"activations/relu": "unchanged", "activations/square": "changed", "fresh/fresh": "added"}
    expected |= {"activations/swish_gate": "unchanged", "old/doomed": "removed"}
    assert verdicts(result) == {f"{name}:fp32": verdict for name, verdict in expected.items()}, result.stderr
    renamed = result.case("activations/swish_gate:fp32@sm_90")
    assert renamed["renamed_from"] == "activations/gate:fp32@sm_90"
    untouched = result.case("activations/relu:fp32@sm_90")
    assert untouched["findings"] == ["not-compiled:same-input"]
    assert "triton==3.9.0 (pinned in requirements.txt)" in result.run["head"]["note"]


def test_where_a_revision_is_exported_does_not_reach_the_code(irdiff, kernels, cache):
    """The text of an assertion names the kernel's file: below the repository, not below the cache."""
    before = "    result = tl.max"
    edit(kernels, ACTIVATIONS, before, f"    tl.device_assert(x < 9, 'x')\n{before}")
    edit(kernels, "bench/irdiff/activations/relu.py", "BLOCK=1024)", "BLOCK=1024, debug=True)")
    commit(kernels, "Assert")
    write(kernels, {"NOTES": "another tree"})
    commit(kernels, "Note")
    words = ("--no-cache", "--case", "activations/relu", "--target", "sm_90")
    result = irdiff("compare", "HEAD~1", "HEAD", *words, cwd=kernels)
    assert result.verdicts() == {"unchanged": 1}, result.stderr
    assert result.run["base"]["corpus"] != result.run["head"]["corpus"]
    store = Store(cache / "results")
    texts = [store.get("".join(path.parts[-2:])) for path in (store.root / "blobs").glob("*/*")]
    asserting = [text for text in texts if text and b".entry relu" in text and b"__assertfail" in text]
    assert asserting
    assert all(str(cache.resolve()).encode() not in text for text in asserting)


def test_uncommitted_kernels_and_a_release_beside_a_revision(irdiff, kernels):
    """A release has the kernels of the revision, without what is not committed."""
    edit(kernels, ACTIVATIONS, "x * x\n", "x * x * x\n")
    result = irdiff("compare", "--target", "sm_90", cwd=kernels / "src")
    assert result.verdicts() == {"changed": 1, "unchanged": 3}, result.stderr
    result = irdiff("compare", "triton==3.9.0", "HEAD", "--target", "sm_90", cwd=kernels)
    assert result.verdicts() == {"unchanged": 4}, result.stderr
    assert "kernels of HEAD" in result.run["base"]["note"]


def test_the_kernels_that_the_versions_of_a_series_share(kernels, triton_repository, config, tmp_path):
    """What a history keeps is known by them: an edit is compiled again."""
    write(tmp_path, {"corpus/a/b.py": "LAUNCHES = {}\n"})

    def shared(spec, repo):
        corpus = None if repo == kernels else tmp_path / "corpus"
        options = sides.SideOptions(repo=repo, corpus=corpus, triton=None, build=False)
        return sides.shared_corpus(spec, options, config)

    def all_of_them():
        return [shared(spec, repo) for repo in (kernels, triton_repository) for spec in (RELEASE, "HEAD")]

    before = all_of_them()
    edit(kernels, ACTIVATIONS, "x * x\n", "x * x * x\n")
    write(tmp_path, {"corpus/a/b.py": "LAUNCHES = {1: 2}\n"})
    after = all_of_them()
    assert before[1] == after[1] == "", "each commit has its own"
    assert before[2] == before[3]
    assert not {before[0], before[2]} & {*after}
