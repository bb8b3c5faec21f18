"""Bisect over commits of a Triton checkout, over an adopted release."""

import json

from tests.programs.checkouts import AMD, NVIDIA, SEMANTIC, commit, edit, git, write

ADD = "elementwise/vector_add:fp32-16m"


def test_each_commit_is_found(irdiff, adopted, tmp_path):
    """On a line of commits of every kind, with a side branch merged and a commit that does not start."""
    repo, commits = adopted, {"first": git(adopted, "rev-parse", "HEAD")}

    def step(name, path, before, after):
        edit(repo, path, before, after)
        commits[name] = commit(repo, name)

    step("comment", SEMANTIC, "class ", "# a comment\nclass ")
    step("amd", AMD, "if knobs.amd.use_buffer_ops:", "if False:")
    git(repo, "checkout", "-q", "-b", "side")
    step("nvidia", NVIDIA, "passes.ttgpuir.add_coalesce(pm)", "pass")
    git(repo, "checkout", "-q", "main")
    write(repo, {"README.md": "about\n"})
    commits["readme"] = commit(repo, "readme")
    git(repo, "merge", "-q", "--no-edit", "side")
    commits["merge"] = git(repo, "rev-parse", "HEAD")
    package, error = "python/triton/__init__.py", "raise ImportError('not yet')\n"
    step("unbuildable", package, "__version__", f"{error}__version__")
    step("cured", package, error, "")
    step("frontend", SEMANTIC, "create_fadd(input.handle", "create_fsub(input.handle")
    step("raises", NVIDIA, "        emuTF32", "        raise ValueError('on purpose')\n        emuTF32")
    commits["last"] = commit(repo, "last")
    names = {sha: name for name, sha in commits.items()}

    def bisect(good, bad, target, *more):
        return irdiff("bisect", commits[good], commits[bad], "--case", f"{ADD}@{target}", *more, cwd=repo)

    def found(*words):
        path = tmp_path / "finding.json"
        done = bisect(*words, "--json", str(path))
        assert done.code == 0, done.stderr
        finding = json.loads(path.read_text())
        return [names[sha] for sha in finding["commits"]], finding, " ".join(finding["diff"])

    named, finding, diff = found("first", "cured", "gfx942")
    assert (named, finding["verdict"], finding["origin"]) == (["amd"], "changed", "ttgir")
    assert "-" in diff
    named, _, _ = found("first", "cured", "sm_90")
    assert named == ["nvidia"], "inside of the side branch, not its merge"
    named, finding, diff = found("frontend", "last", "sm_90")
    assert (named, finding["verdict"]) == (["raises"], "broken")
    assert "on purpose" in diff, "the traceback stands for the diff"
    named, finding, diff = found("merge", "frontend", "gfx942", "--stage", "ttir")
    assert named == ["frontend"] and "subf" in diff
    assert set(finding["skipped"]) == set(finding["tried"]) & {commits["unbuildable"]}

    same, turned = bisect("first", "comment", "sm_90"), bisect("cured", "first", "sm_90")
    assert (same.code, turned.code) == (2, 2)
    assert "is the same at" in same.stderr and "no ancestor" in turned.stderr
