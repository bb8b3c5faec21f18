"""What stages see besides the IR and the options of a launch: each edit of it is `changed`.

What a file of the frontend does as it is imported; what a stage does before and after its assembler, in place of
it, or behind it. What a workload replaces for a launch is in the rows of `tests/data/evidence`.
"""

import re

from tests.programs import edited_toolchain
from tests.programs.evidence import comparing
from tests.programs.evidence.comparing import Repository
from tests.texts import text_of

WORDS = ("--target", "sm_90", "--no-recheck", "--no-attribute")
ONE = ("--case", "elementwise/vector_add:fp32-16m", *WORDS)
NVIDIA = "triton/backends/nvidia/compiler.py"
FRONTEND = "triton/testing.py"
COMPILE = "triton/compiler/compiler.py"

KERNEL = text_of("what_stages_see/kernel.py")
WORKLOAD = text_of("what_stages_see/workload.py")


def workload(run, module="k"):
    return WORKLOAD.replace("MODULE", module).replace("RUN", run)


def corpus(folder, text):
    comparing.write(folder / "_k.py", KERNEL)
    comparing.write(folder / "f" / "one.py", text)
    return "--corpus", str(folder)


STAGES = text_of("what_stages_see/stages.py")
GIVEN = text_of("what_stages_see/given.py")
BEHIND = text_of("what_stages_see/behind.py")
EDITS = """
nothing_differs a_function_of_the_frontend_edits_one_launch an_object_of_it_does_in_a_thread flags_that_the_stage_asks_for
an_object_that_chooses_after_the_assembler what_the_stage_does_after_the_assembler a_plain_value_that_the_frontend_sets
a_launcher_s_source a_file_behind_the_binary a_file_of_base_alone a_file_of_head_alone
"""
LAUNCHES = dict(zip(EDITS.split(), (3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14), strict=True))
"""Each edit is of the launches with this number of stages."""


def edited(newest, folder, number, op, alone):
    given = GIVEN.replace("NUMBER", number).replace("OP", op)
    behind = BEHIND.replace("NUMBER", number).replace("ALONE", alone)
    files = {NVIDIA: STAGES.replace("NUMBER", number), FRONTEND: given, COMPILE: behind}
    return edited_toolchain.make(newest, folder, files)


def test_what_stages_do_and_call(irdiff, newest, tmp_path):
    """What is behind the binary is compared where the PTX is the same, and no case speaks for another."""
    base = edited(newest, tmp_path / "base", "3", "add", "13")
    head = edited(newest, tmp_path / "head", "0", "sub", "14")
    text = workload("", "_k").partition("LAUNCHES")[0]
    text += f"LAUNCHES = {{name: launch(plain, *X, num_stages=n) for name, n in {LAUNCHES}.items()}}\n"
    words = (base, head, *corpus(tmp_path / "corpus", text), *WORDS)
    assert irdiff("compare", *words, "--case", "f/one:nothing_differs").verdicts() == {"unchanged": 1}
    found = irdiff("compare", *words)
    verdicts = {case["id"].partition(":")[2]: case["verdict"] for case in found.run["cases"]}
    assert verdicts.pop("nothing_differs@sm_90") == "unchanged"
    assert verdicts == {f"{name}@sm_90": "changed" for name in LAUNCHES if name != "nothing_differs"}


LOADED = text_of("what_stages_see/loaded.py")


def test_a_stage_after_the_machine_code_makes_what_is_loaded(irdiff, newest, tmp_path):
    sides = [
        edited_toolchain.make(newest, tmp_path / name, {NVIDIA: LOADED.replace("SIDE", name)})
        for name in ("one", "other")
    ]
    assert irdiff("compare", *sides, *ONE).verdicts() == {"changed": 1}


def test_what_reaches_a_later_stage_past_the_ir(newest, cache, tmp_path):
    """A plain value that a launch sets; and what a stage leaves for the next: there, the kernel is renamed."""
    side = edited(newest, tmp_path / "side", "3", "add", "13")
    repo = Repository.new(tmp_path / "repo")
    sets = "def run(x, y):\n    compiler.LEVEL = {}\n    plain(x, y, num_stages=9)\n"
    leaves = workload("def run(x, y):\n    plain(x, y, num_stages=10)\n", "named")
    for name, level, kernel in (("base", 3, "kernel"), ("head", 0, "renamed")):
        texts = {"src/k.py": KERNEL, "bench/f/sets.py": workload(sets.format(level))}
        named = {"src/named.py": KERNEL, "bench/f/leaves.py": leaves}
        texts |= {path: re.sub(r"\bkernel\b", kernel, text) for path, text in named.items()}
        repo.commit(name, texts)
    found = comparing.compare(
        "base", "head", "--triton", side, "--target", "sm_90", cache=cache, repo=repo.path
    )
    assert {case["workload"]: case["verdict"] for case in found.cases()} == {
        "f/leaves": "changed",
        "f/sets": "changed",
    }


READING = """def make_ttgir(mod, metadata, opt, capability):
        import dataclasses
        if open({!r}).read() == "1": opt = dataclasses.replace(opt, num_stages=1)"""
MAKE = "def make_ttgir(mod, metadata, opt, capability):"
PINNED = ("knobs.py", '"TRITON_DEFAULT_FP_FUSION", True', '"TRITON_DEFAULT_FP_FUSION", False')


def test_a_file_that_a_stage_reads_is_a_part_of_what_it_makes(irdiff, newest, tmp_path):
    """The file changes, and nothing else does."""
    path = tmp_path / "outside.txt"
    edit = {NVIDIA: (MAKE, READING.format(str(path)))}
    side = edited_toolchain.make(newest, tmp_path / "side", {NVIDIA: ""}, edit)
    words = (newest.spec, side, "--case", "matmul/pointer:fp16-4096", *WORDS)
    for content, verdict in (("0", "unchanged"), ("1", "changed"), ("0", "unchanged")):
        path.write_text(content)
        assert irdiff("compare", *words).verdicts() == {verdict: 1}


def test_each_side_has_the_defaults_of_its_release_and_variables_of_the_shell_are_named(
    irdiff, newest, tmp_path
):
    edit = {f"triton/{PINNED[0]}": PINNED[1:]}
    side = edited_toolchain.make(newest, tmp_path / "side", {f"triton/{PINNED[0]}": ""}, edit)
    words = (newest.spec, side, "--case", "normalization/softmax:bf16*", *WORDS)
    done = irdiff(
        "compare", *words, TRITON_DEFAULT_FP_FUSION="0", DISABLE_LLVM_OPT="1", TRITON_CACHE_DIR="/x"
    )
    assert "changed" in done.verdicts()
    note = "variables of the shell that no compiler saw: DISABLE_LLVM_OPT, TRITON_DEFAULT_FP_FUSION"
    assert [row for row in done.run["notes"] if row.startswith(f"{note};")]


DUMPING = 'os.environ["TRITON_KERNEL_DUMP"] = "1"\nos.environ["TRITON_DUMP_DIR"] = {!r}\n'
TWICE = "\ndef run(x, y):\n    plain(x, y)\n    plain(x, y, BLOCK=512)\n"
RUN = "\ndef run(x, y):\n    plain(x, y)\n"
OVERRIDING = {
    "variables": 'os.environ["TRITON_KERNEL_OVERRIDE"] = "1"\nos.environ["TRITON_OVERRIDE_DIR"] = "overrides"\n' + RUN,
    "knobs": (
        "triton.knobs.compilation.override = True\n"
        'triton.knobs.cache.override_dir = os.path.abspath("overrides")\n' + RUN
    ),
    "cubin": "def run(x, y):\n    plain(x, y, ir_override='mine.cubin')\n",
}  # fmt: skip


def test_files_that_override_stages(cache, tmp_path):
    dump = tmp_path / "dump"
    repo = Repository.new(tmp_path / "repo")
    repo.commit("dump", {"src/k.py": KERNEL, "bench/f/a.py": workload(DUMPING.format(str(dump)) + TWICE)})
    own = comparing.new_cache(tmp_path / "dumping", cache)
    comparing.compare_commits(repo, "dump", "dump", "--no-cache", cache=own)
    (ptx,) = (path for path in dump.rglob("*.ptx") if "1024" in path.with_suffix(".ttir").read_text())
    text, binaries = ptx.read_text(), [path.read_bytes() for path in dump.rglob("*.cubin")]
    other = text.replace("add.f32", "sub.f32").replace("add.rn.f32", "sub.rn.f32")
    files = {"src/k.py": KERNEL, **{f"bench/f/{way}.py": workload(run) for way, run in OVERRIDING.items()}}
    for name, override, binary in zip(("base", "head"), (text, other), binaries, strict=True):
        overriding = {f"overrides/{ptx.parent.name}/{ptx.name}": override, "mine.cubin": binary}
        repo.commit(name, {**files, **overriding})
    found = comparing.compare_commits(repo, "base", "head", cache=cache)
    assert {case["workload"]: case["verdict"] for case in found.cases()} == {
        f"f/{way}": "changed" for way in OVERRIDING
    }


def test_a_function_that_stays_replaced_does_not_reach_earlier_launches(irdiff, newest, tmp_path):
    """The store would be wrong afterwards: another corpus has the same launch."""
    head = edited_toolchain.make(newest, tmp_path / "head", {COMPILE: "\n\n_NOTHING = 1\n"})
    staying = (
        "def run(x, y):\n    own = compiler.CUDABackend.make_ptx\n    compiler.CUDABackend.make_ptx = "
        'lambda self, *args: own(self, *args).replace("add.", "sub.")\n    plain(x, y)\n'
    )
    text = workload(staying, "_k").partition("LAUNCHES")[0]
    poisoning = corpus(tmp_path / "one", text + 'LAUNCHES = {"a": launch(plain, *X), "b": launch(run, *X)}\n')
    innocent = corpus(tmp_path / "other", text + 'LAUNCHES = {"a": launch(plain, *X)}\n')
    digests = []
    for words in (poisoning, innocent, (*innocent, "--no-cache")):
        made = irdiff("compare", newest.spec, head, *words, *WORDS)
        digests.append(made.case("f/one:a@sm_90")["artifacts"]["base"].get("ptx"))
    assert digests[1] == digests[2]
