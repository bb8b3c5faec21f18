"""Commits of a Triton checkout over an adopted release: each kind of change, and what is said of it."""

from tests.programs.checkouts import AMD, NVIDIA, SEMANTIC, commit, edit, git, write

RELEASE = "triton==3.9.0"
ADD = "elementwise/vector_add:fp32-16m"
CASES = ("--case", ADD, "--target", "sm_90", "--no-recheck")
BOTH = (*CASES, "--target", "gfx942")
FADD, FSUB = "create_fadd(input.handle, other.handle)", "create_fsub(input.handle, other.handle)"


def test_the_release_is_its_revision_and_comments_change_nothing(irdiff, adopted):
    result = irdiff("compare", RELEASE, "HEAD", *CASES, cwd=adopted)
    assert result.run["base"]["digest"] == result.run["head"]["digest"]
    assert result.verdicts() == {"unchanged": 1}
    edit(adopted, SEMANTIC, "class ", "# a comment that moves every line\n\nclass ")
    signature = "    def make_ttir(mod, metadata, opt, capability):\n"
    edit(adopted, NVIDIA, signature, signature + '        """Says what it does."""\n')
    commit(adopted, "Document")
    result = irdiff("compare", "HEAD~1", "HEAD", *CASES, cwd=adopted)
    assert result.verdicts() == {"unchanged": 1}, result.stderr
    for case in result.run["cases"]:
        assert set(case["stages"].values()) <= {"identical", "equivalent"}
    assert result.run["base"]["digest"] != result.run["head"]["digest"]
    assert "adopted" in result.run["head"]["note"]


def test_a_pass_of_one_vendor_and_an_exception_in_a_stage_of_the_other(irdiff, adopted):
    edit(adopted, AMD, "if knobs.amd.use_buffer_ops:", "if False:")
    commit(adopted, "Change a pass")
    edit(adopted, NVIDIA, "        emuTF32", "        raise ValueError('on purpose')\n        emuTF32")
    commit(adopted, "Break a stage")
    result = irdiff("compare", "main~2", "main~1", *BOTH, cwd=adopted)
    changed = result.case(f"{ADD}@gfx942")
    assert (changed["verdict"], changed["origin"]["stage"]) == ("changed", "ttgir")
    assert changed["stages"]["ttir"] == "identical"
    assert result.case(f"{ADD}@sm_90")["verdict"] == "unchanged"
    assert result.run["summary"]["radius"]["sm_90"]["changed"] == 0
    result = irdiff("compare", "HEAD~1", "HEAD", *CASES, "--exit-code", cwd=adopted)
    assert result.code == 1
    broken = result.case(f"{ADD}@sm_90")
    failure = broken["failures"]["head"]
    assert (broken["verdict"], failure["stage"]) == ("broken", "ttgir")
    assert "on purpose" in broken["error"]
    assert "raise ValueError('on purpose')" in failure["stderr"].partition("Traceback")[2]


def test_commits_to_the_frontend(irdiff, adopted):
    def compared(path, before, after):
        edit(adopted, path, before, after)
        commit(adopted, "Edit the frontend")
        return irdiff("compare", "HEAD~1", "HEAD", *CASES, cwd=adopted)

    lowered = compared(SEMANTIC, FADD, FSUB).case(f"{ADD}@sm_90")
    assert (lowered["verdict"], lowered["origin"]["stage"]) == ("changed", "ttir")
    assert [lowered["stages"][name] for name in ("ttir", "ttgir", "llir")] == ["changed"] * 3
    git(adopted, "revert", "--no-edit", "HEAD")
    assert "identical compilers" in irdiff("compare", "HEAD~2", "HEAD", *CASES, cwd=adopted).stdout
    less = '["tt.divisibility", 4]'
    specialized = compared("python/triton/backends/compiler.py", '["tt.divisibility", 16]', less)
    case = specialized.case(f"{ADD}@sm_90")
    assert (case["verdict"], case["origin"]["stage"]) == ("changed", "ttir")
    assert any(finding.startswith("specialization-differs") for finding in case["findings"])
    missing = "import a_module_that_is_not_there\n__version__"
    done = compared("python/triton/__init__.py", "__version__", missing)
    assert done.code == 3
    assert "its Python part does not start" in done.stderr and "a_module_that_is_not_there" in done.stderr


def test_defaults_see_the_working_tree(irdiff, adopted):
    """Without arguments: the merge base with main, against uncommitted and untracked files."""
    git(adopted, "checkout", "-q", "-b", "feature")
    edit(adopted, SEMANTIC, "class ", "# committed on the branch\nclass ")
    commit(adopted, "On the branch")
    git(adopted, "checkout", "-q", "main")
    edit(adopted, "python/triton/testing.py", "import", "# main went on\nimport")
    commit(adopted, "On main")
    git(adopted, "checkout", "-q", "feature")
    extra = "def lower(builder):\n    return builder.create_fsub\n"
    write(adopted, {"python/triton/_extra.py": extra, "notes.log": "ignored"})
    untracked = "__import__('triton._extra')._extra.lower(self.builder)(input.handle, other.handle)"
    edit(adopted, SEMANTIC, "self.builder.create_fadd(input.handle, other.handle)", untracked)
    before = _state(adopted)
    result = irdiff("compare", *CASES, cwd=adopted)
    assert result.verdicts() == {"changed": 1}, result.stderr
    assert result.run["base"]["spec"].startswith(git(adopted, "merge-base", "main", "feature")[:10])
    assert result.run["head"]["spec"].startswith("working tree")
    assert _state(adopted) == before, "the checkout is never written to"


def _state(repo):
    stats = {str(path): path.stat() for path in repo.rglob("*") if path.is_file()}
    return {name: (stat.st_mtime_ns, stat.st_size) for name, stat in stats.items()}


def test_adopting_another_release_names_the_files(irdiff, own_cache, triton_repository):
    edit(triton_repository, SEMANTIC, "class ", "# not in the release\nclass ")
    write(triton_repository, {"python/triton/new.py": ""})
    commit(triton_repository, "On top")
    done = irdiff("toolchain", "adopt", "HEAD", RELEASE, cwd=triton_repository)
    assert done.code == 3
    assert "differs: triton/language/semantic.py" in done.stderr
    assert "only in the revision: triton/new.py" in done.stderr
    assert "--anyway" in done.stderr
    refused = irdiff("compare", "HEAD~1", "HEAD", "--no-build", *CASES, cwd=triton_repository)
    assert refused.code == 3
    assert "has no native build" in refused.stderr
    assert "irdiff toolchain adopt" in refused.stderr


def test_different_llvms_are_said_loudly(irdiff, adopted):
    write(adopted, {"cmake/llvm-hash.txt": "f" * 40 + "\n"})
    commit(adopted, "Bump LLVM")
    assert irdiff("toolchain", "adopt", "HEAD", RELEASE, cwd=adopted).code == 0
    result = irdiff("compare", "HEAD~1", "HEAD", *CASES, cwd=adopted)
    assert "ATTENTION" in result.stderr
    assert any("different LLVMs" in note for note in result.run["notes"])
