"""What stages see beside the IR and the options of a launch: each edit of it is `changed`, as without shortcuts.

Hooks, registries and functions that a workload replaces for a launch; what a file of the frontend does as it is
imported; what a stage does before and after its assembler, in place of it, or behind it.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

import irdiff as irdiff_package
from irdiff.model import Toolchain
from tests import edited_toolchain
from tests.programs.evidence import comparing
from tests.programs.evidence.comparing import Repository

pytestmark = pytest.mark.integration
WORDS = ("--case", "elementwise/vector_add:fp32-16m", "--target", "sm_90", "--no-recheck", "--no-attribute")
NVIDIA = "triton/backends/nvidia/compiler.py"
TESTING = "triton/testing.py"

KERNEL = """\
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)
"""
RUN = """\
import os
import triton
from irdiff_corpus import empty, launch, tensor
from k import kernel
{more}

def plain(x, y, **options):
    out = empty(x.shape, x.dtype)
    kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), BLOCK=1024, **options)


{run}

X = tensor((4096,), "fp32"), tensor((4096,), "fp32")
LAUNCHES = {launches}
"""


def workload(run: str = "", more: str = "", launches: str = '{"a": launch(run, *X)}') -> dict[str, str]:
    return {"src/k.py": KERNEL, "bench/f/one.py": RUN.format(run=run, more=more, launches=launches)}


def both(tmp_path: Path, cache: Path, base: dict, head: dict, *words: str) -> None:
    """Two commits: what changed by default is what changed without a shortcut."""
    repo = Repository.new(tmp_path / "repo")
    repo.commit("base", base)
    repo.commit("head", head)
    of_commits(repo, cache, tmp_path, *words)


def of_commits(repo: Repository, cache: Path, tmp_path: Path, *words: str) -> None:
    own = comparing.new_cache(tmp_path / "own", cache)
    found = []
    for more in ((), ("--no-cache",)):
        made = comparing.compare_commits(repo, "base", "head", *words, *more, cache=own)
        found.append({case["id"]: case["verdict"] for case in made.cases()})
    assert found[0] == found[1]
    assert "changed" in found[0].values()


def of_toolchains(irdiff, base: str, head: str, *words: str) -> None:
    found = []
    for more in ((), ("--no-cache",)):
        made = irdiff("compare", base, head, *(words or WORDS), *more)
        assert made.run is not None, made.stderr
        found.append({case["id"]: case["verdict"] for case in made.run["cases"]})
    assert found[0] == found[1]
    assert set(found[0].values()) == {"changed"}


# what the assembler's own stage does after ptxas has run

AGAIN = """

_make_cubin = CUDABackend.make_cubin


def _again(self, src, metadata, opt, capability):
    made = _make_cubin(self, src, metadata, opt, capability)
    if len(made) < 100:
        return made
    import dataclasses
    return _make_cubin(self, src, metadata, dataclasses.replace(opt, ptx_options="--opt-level 0"), capability)


CUDABackend.make_cubin = _again
"""


def test_what_the_stage_of_the_assembler_does_after_it(irdiff, newest: Toolchain, tmp_path: Path) -> None:
    head = edited_toolchain.make(newest, tmp_path / "head", {NVIDIA: AGAIN})
    of_toolchains(irdiff, newest.spec, head)


# ir_override that names a cubin


def cubin(python: str, folder: Path, block: int) -> bytes:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "k.py").write_text(KERNEL)
    (folder / "make.py").write_text(
        "import sys, triton\nfrom triton.backends.compiler import GPUTarget\nfrom k import kernel\n"
        "src = triton.compiler.ASTSource(kernel, {'x_ptr': '*fp32', 'y_ptr': '*fp32', 'out_ptr': '*fp32',"
        " 'n': 'i32', 'BLOCK': 'constexpr'}, {'BLOCK': int(sys.argv[1])})\n"
        "made = triton.compile(src, target=GPUTarget('cuda', 90, 32))\n"
        "open('made.cubin', 'wb').write(made.asm['cubin'])\n"
    )
    environ = {**os.environ, "TRITON_CACHE_DIR": str(folder / "cache")}
    environ.pop("PYTHONPATH", None)
    subprocess.run([python, "make.py", str(block)], cwd=folder, check=True, env=environ)
    return (folder / "made.cubin").read_bytes()


def test_a_cubin_in_place_of_the_assemblers(newest: Toolchain, cache: Path, tmp_path: Path) -> None:
    repo = Repository.new(tmp_path / "repo")
    files = workload("def run(x, y):\n    plain(x, y, ir_override='mine.cubin')\n")
    for name, block in (("base", 1024), ("head", 512)):
        repo.commit(name, files)
        (repo.path / "mine.cubin").write_bytes(cubin(newest.python, tmp_path / name, block))
        comparing.git(repo.path, "add", "-A", "--force")
        comparing.git(repo.path, "commit", "-q", "--amend", "-m", name)
        comparing.git(repo.path, "tag", "-f", name)
    of_commits(repo, cache, tmp_path)


# what a file of the frontend does to the stages as it is imported

IMPORTS = {
    "variable": 'import os as _os\n_os.environ["DISABLE_LLVM_OPT"] = "1"\n',
    "knob": "from triton import knobs as _knobs\n_knobs.nvidia.disable_ptxas_opt = True\n",
    "method": (
        "from triton.backends.nvidia.compiler import CUDABackend as _B\n_own = _B.make_ptx\n"
        "def _make_ptx(self, *args):\n    return _own(self, *args).replace('add.', 'sub.')\n_B.make_ptx = _make_ptx\n"
    ),
    "registry": (
        "import os as _os\nfrom triton import _instrumentation as _i\n"
        "_i.register_instrumentation(point='ttgpuir-to-llvmir', backend='nvidia',"
        " callback=lambda pm: _os.environ.update(DISABLE_LLVM_OPT='1'))\n"
    ),
}


@pytest.mark.parametrize("kind", IMPORTS)
def test_what_the_frontend_sets_as_it_is_imported(
    irdiff, newest: Toolchain, tmp_path: Path, kind: str
) -> None:
    head = edited_toolchain.make(newest, tmp_path / "head", {TESTING: "\n\n" + IMPORTS[kind]})
    of_toolchains(irdiff, newest.spec, head)


# a function of the compiler that a launch has replaced for its own time

PATCHED = """\
from triton.backends.nvidia.compiler import CUDABackend


def run(x, y):
    own = CUDABackend.make_ptx
    CUDABackend.make_ptx = lambda self, *args: own(self, *args).replace("add.", "{name}.")
    try:
        plain(x, y)
    finally:
        CUDABackend.make_ptx = own
"""


def test_a_function_that_is_replaced_for_one_launch(cache: Path, tmp_path: Path) -> None:
    head = workload(PATCHED.format(name="sub"))
    both(tmp_path, cache, workload(PATCHED.format(name="add")), head)


STAYING = PATCHED.partition("    try:")[0] + "    plain(x, y)\n"


def test_a_function_that_stays_replaced_does_not_reach_earlier_launches(
    irdiff, newest: Toolchain, cache: Path, tmp_path: Path
) -> None:
    """The store is wrong afterwards: another corpus has the same launch."""
    edit = {"triton/compiler/compiler.py": "\n\n_NOTHING = 1\n"}
    head = edited_toolchain.make(newest, tmp_path / "head", edit)
    launches = '{"a": launch(plain, *X), "b": launch(run, *X)}'
    corpora = {}
    for name, files in {
        "poisoning": workload(STAYING.format(name="sub"), launches=launches),
        "innocent": workload(launches='{"a": launch(plain, *X)}'),
    }.items():
        corpora[name] = tmp_path / name
        (corpora[name] / "f").mkdir(parents=True)
        (corpora[name] / "_k.py").write_text(files["src/k.py"])
        (corpora[name] / "f" / "one.py").write_text(files["bench/f/one.py"].replace("from k ", "from _k "))
    digests = []
    for name, more in (("poisoning", ()), ("innocent", ()), ("innocent", ("--no-cache",))):
        words = ("--case", "f/one:a", "--target", "sm_90", "--no-recheck", "--no-attribute")
        if name == "poisoning":
            words = ("--case", "f/one", *words[2:])
        made = irdiff("compare", newest.spec, head, "--corpus", str(corpora[name]), *words, *more)
        assert made.run is not None, made.stderr
        case = next(c for c in made.run["cases"] if c["id"] == "f/one:a@sm_90")
        digests.append(json.dumps(case["artifacts"]["base"].get("ptx")))
    assert digests[1] == digests[2]


# files that are named in a list of paths

BY_CONTENT = """\
import sys
sys.path.insert(0, sys.argv[1])
from worker import frontend
print(frontend._by_content(sys.argv[2]))
"""


@pytest.mark.parametrize("separator", [":", ";", ",", " "])
def test_files_of_a_list_count_by_content(newest: Toolchain, tmp_path: Path, separator: str) -> None:
    """As in TRITON_PLUGIN_PATHS: without that a stored result outlives a plugin that was built again."""
    plugins = [tmp_path / "one.so", tmp_path / "other.so"]
    found = []
    for content in ("before", "after"):
        for path in plugins:
            path.write_text(content)
        text = separator.join(map(str, plugins))
        words = [newest.python, "-c", BY_CONTENT, str(Path(irdiff_package.__file__).parent), text]
        found.append(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    assert found[0] != found[1]


# files that override stages


OVERRIDING = {
    "variables": 'os.environ["TRITON_KERNEL_OVERRIDE"] = "1"\nos.environ["TRITON_OVERRIDE_DIR"] = "overrides"\n',
    "knobs": (
        "triton.knobs.compilation.override = True\n"
        'triton.knobs.cache.override_dir = os.path.abspath("overrides")\n'
    ),
}


@pytest.mark.parametrize("way", OVERRIDING)
def test_files_that_override_stages(cache: Path, tmp_path: Path, way: str) -> None:
    dump, run = tmp_path / "dump", "def run(x, y):\n    plain(x, y)\n"
    dumping = f'os.environ["TRITON_KERNEL_DUMP"] = "1"\nos.environ["TRITON_DUMP_DIR"] = {str(dump)!r}\n'
    repo = Repository.new(tmp_path / "repo")
    repo.commit("dump", workload(run, dumping))
    own = comparing.new_cache(tmp_path / "dumping", cache)
    comparing.compare_commits(repo, "dump", "dump", "--no-cache", cache=own)
    (ptx,) = dump.rglob("*.ptx")
    text = ptx.read_text()
    place = f"overrides/{ptx.parent.name}/{ptx.name}"
    other = text.replace("add.f32", "sub.f32").replace("add.rn.f32", "sub.rn.f32")
    for name, content in (("base", text), ("head", other)):
        repo.commit(name, {**workload(run, OVERRIDING[way]), place: content})
    of_commits(repo, cache, tmp_path)


# two launches that differ in a hook alone

HOOKS = """\
def hook(name):
    def added(backend=None, stages=None, options=None, language=None, capability=None):
        if stages is None:
            return name, name
        own = stages["ptx"]
        stages["ptx"] = lambda *args: own(*args).replace("add.f32", name + ".f32").replace("add.rn.f32", name + ".rn.f32")
    return added


def run(x, y):
    for name in ("add", "{second}"):
        triton.knobs.runtime.add_stages_inspection_hook = hook(name)
        plain(x, y)
    triton.knobs.runtime.add_stages_inspection_hook = None
"""


def test_launches_under_two_hooks(cache: Path, tmp_path: Path) -> None:
    base, head = (workload(HOOKS.replace("{second}", second)) for second in ("add", "sub"))
    both(tmp_path, cache, base, head)


# state of the compiler that is no function

STATE = """\
import triton._instrumentation


class Callback:
    def __init__(self):
        self.on = {on}

    def __call__(self, pm):
        if self.on:
            os.environ["DISABLE_LLVM_OPT"] = "1"


triton._instrumentation.register_instrumentation(
    point="ttgpuir-to-llvmir", backend="nvidia", callback=Callback()
)
"""


def test_state_of_the_compiler(cache: Path, tmp_path: Path) -> None:
    run = "def run(x, y):\n    plain(x, y)\n"
    base, head = (workload(run, STATE.replace("{on}", on)) for on in ("False", "True"))
    both(tmp_path, cache, base, head)


# what the assembler's stage calls before ptxas

CALLING = """

_make_cubin = CUDABackend.make_cubin


def _with_flags(self, src, metadata, opt, capability):
    import dataclasses
    from triton import _instrumentation
    flags = _instrumentation._callbacks.get(("flags", "nvidia"))
    opt = dataclasses.replace(opt, ptx_options=flags()) if flags else opt
    return _make_cubin(self, src, metadata, opt, capability)


CUDABackend.make_cubin = _with_flags
"""
GIVING = """

from triton import _instrumentation as _i


def _flags():
    return "--opt-level {level}"


_i.register_instrumentation(point="flags", backend="nvidia", callback=_flags)
"""


def test_what_the_stage_of_the_assembler_calls_before_it(irdiff, newest: Toolchain, tmp_path: Path) -> None:
    base, head = (
        edited_toolchain.make(
            newest, tmp_path / f"of{n}", {NVIDIA: CALLING, TESTING: GIVING.replace("{level}", n)}
        )
        for n in ("3", "0")
    )
    of_toolchains(irdiff, base, head)


# one compilation says nothing of another

SOMETIMES = """

_make_ptx = CUDABackend.make_ptx


def _sometimes(self, src, metadata, opt, capability):
    from triton import _instrumentation
    edit = _instrumentation._callbacks.get(("ptx", "nvidia"))
    made = _make_ptx(self, src, metadata, opt, capability)
    return edit(made) if edit and opt.num_warps == 8 else made


CUDABackend.make_ptx = _sometimes
"""
EDITING = """

from triton import _instrumentation as _i


def _edit(text):
    return text.replace("add.f32", "{name}.f32").replace("add.rn.f32", "{name}.rn.f32")


_i.register_instrumentation(point="ptx", backend="nvidia", callback=_edit)
"""


def test_one_case_does_not_speak_for_another(irdiff, newest: Toolchain, tmp_path: Path) -> None:
    base, head = (
        edited_toolchain.make(
            newest, tmp_path / n, {NVIDIA: SOMETIMES, TESTING: EDITING.replace("{name}", n)}
        )
        for n in ("add", "sub")
    )
    corpus = tmp_path / "corpus"
    (corpus / "f").mkdir(parents=True)
    files = workload(
        launches='{"four": launch(plain, *X, num_warps=4), "eight": launch(plain, *X, num_warps=8)}'
    )
    (corpus / "_k.py").write_text(files["src/k.py"])
    (corpus / "f" / "one.py").write_text(files["bench/f/one.py"].replace("from k ", "from _k "))
    words = ("--target", "sm_90", "--no-recheck", "--no-attribute", "--corpus", str(corpus), "--case")
    first = irdiff("compare", base, head, *words, "f/one:four")
    assert first.run is not None, first.stderr
    of_toolchains(irdiff, base, head, *words, "f/one:eight")


# what a stage has a thread do

IN_A_THREAD = """

_make_ptx = CUDABackend.make_ptx


def _in_a_thread(self, src, metadata, opt, capability):
    from concurrent.futures import ThreadPoolExecutor
    from triton import _instrumentation
    edit = _instrumentation._callbacks.get(("ptx", "nvidia"))
    made = _make_ptx(self, src, metadata, opt, capability)
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(edit, made).result()


CUDABackend.make_ptx = _in_a_thread
"""
EDITS = """

from triton import _instrumentation as _i


class _Edit:
    def __call__(self, text):
        return text.replace("add.f32", "{name}.f32").replace("add.rn.f32", "{name}.rn.f32")


_i.register_instrumentation(point="ptx", backend="nvidia", callback=_Edit())
"""


def test_what_a_stage_calls_in_a_thread(irdiff, newest: Toolchain, tmp_path) -> None:
    base, head = (
        edited_toolchain.make(
            newest, tmp_path / n, {NVIDIA: IN_A_THREAD, TESTING: EDITS.replace("{name}", n)}
        )
        for n in ("add", "sub")
    )
    of_toolchains(irdiff, base, head)


# an object of the frontend that the stage of the assembler calls after ptxas

AFTERWARDS = """

_make_cubin = CUDABackend.make_cubin


def _afterwards(self, src, metadata, opt, capability):
    import dataclasses
    from triton import _instrumentation
    made = _make_cubin(self, src, metadata, opt, capability)
    opt = dataclasses.replace(opt, ptx_options="--opt-level 0")
    choose = _instrumentation._callbacks[("cubin", "nvidia")]
    return choose(made, _make_cubin(self, src, metadata, opt, capability))


CUDABackend.make_cubin = _afterwards
"""
CHOOSES = """

from triton import _instrumentation as _i


class _Choose:
    def __call__(self, *made):
        return made[{number}]


_i.register_instrumentation(point="cubin", backend="nvidia", callback=_Choose())
"""


def test_what_an_object_of_the_frontend_does_after_the_assembler(
    irdiff, newest: Toolchain, tmp_path: Path
) -> None:
    base, head = (
        edited_toolchain.make(
            newest, tmp_path / f"of{n}", {NVIDIA: AFTERWARDS, TESTING: CHOOSES.replace("{number}", n)}
        )
        for n in ("0", "1")
    )
    of_toolchains(irdiff, base, head)


# a plain value of the compiler that something else sets

LEVEL = """

LEVEL = 3
_make_cubin = CUDABackend.make_cubin


def _at_level(self, src, metadata, opt, capability):
    import dataclasses
    opt = dataclasses.replace(opt, ptx_options=f"--opt-level {LEVEL}")
    return _make_cubin(self, src, metadata, opt, capability)


CUDABackend.make_cubin = _at_level
"""


def test_a_plain_value_that_the_frontend_sets(irdiff, newest: Toolchain, tmp_path: Path) -> None:
    setting = "\n\nfrom triton.backends.nvidia import compiler as _c\n_c.LEVEL = {n}\n"
    base, head = (
        edited_toolchain.make(
            newest, tmp_path / f"of{n}", {NVIDIA: LEVEL, TESTING: setting.replace("{n}", n)}
        )
        for n in ("3", "0")
    )
    of_toolchains(irdiff, base, head)


def test_a_plain_value_that_a_launch_sets(newest: Toolchain, cache: Path, tmp_path: Path) -> None:
    side = edited_toolchain.make(newest, tmp_path / "side", {NVIDIA: LEVEL})
    run = "def run(x, y):\n    compiler.LEVEL = {n}\n    plain(x, y)\n"
    more = "from triton.backends.nvidia import compiler"
    base, head = (workload(run.replace("{n}", n), more) for n in ("3", "0"))
    both(tmp_path, cache, base, head, "--triton", side)


# what an earlier stage leaves on its backend for that of the assembler

LEAVING = """

_make_ptx, _make_cubin = CUDABackend.make_ptx, CUDABackend.make_cubin


def _leaving(self, src, metadata, opt, capability):
    made = _make_ptx(self, src, metadata, opt, capability)
    self.level = 0 if "renamed" in made else 3
    return made


def _taking(self, src, metadata, opt, capability):
    import dataclasses
    opt = dataclasses.replace(opt, ptx_options=f"--opt-level {getattr(self, 'level', 3)}")
    return _make_cubin(self, src, metadata, opt, capability)


CUDABackend.make_ptx, CUDABackend.make_cubin = _leaving, _taking
"""


def test_what_a_stage_leaves_for_the_assembler(newest: Toolchain, cache: Path, tmp_path: Path) -> None:
    """The kernel is renamed: the PTX is another, and the same apart from that."""
    side = edited_toolchain.make(newest, tmp_path / "side", {NVIDIA: LEAVING})
    base = workload("def run(x, y):\n    plain(x, y)\n")
    head = {name: re.sub(r"\bkernel\b", "renamed", text) for name, text in base.items()}
    both(tmp_path, cache, base, head, "--triton", side)


# a stage that one side alone has, or that each side makes differently


def writes_a_launcher(text: str, stage: str = "launcher_src") -> str:
    return f"""

_compile = compile


def compile(*args, **kwargs):
    made = _compile(*args, **kwargs)
    get_cache_manager("0" * 64).put("void {text}();", "kernel.{stage}", binary=False)
    return made
"""


@pytest.mark.parametrize("stage", ["launcher_src", "launch.json"])
def test_what_a_fork_makes_after_the_binary_is_compared_where_the_ptx_is_the_same(
    irdiff, newest: Toolchain, tmp_path: Path, stage: str
) -> None:
    """No machine code absorbs what launches it."""
    sides = [
        edited_toolchain.make(
            newest, tmp_path / name, {"triton/compiler/compiler.py": writes_a_launcher(name, stage)}
        )
        for name in ("one", "other")
    ]
    of_toolchains(irdiff, *sides)


def test_a_stage_that_head_alone_makes(irdiff, newest: Toolchain, tmp_path: Path) -> None:
    head = edited_toolchain.make(
        newest, tmp_path / "head", {"triton/compiler/compiler.py": writes_a_launcher("head")}
    )
    for sides in ((newest.spec, head), (head, newest.spec)):
        for more in ((), ("--no-cache",)):
            made = irdiff("compare", *sides, *WORDS, *more)
            for case in made.run["cases"]:
                assert case["verdict"] not in ("unchanged", "absorbed")


# a stage after the machine code: what is loaded is what it makes

AFTER = """

_add_stages = CUDABackend.add_stages


def _with_another(self, stages, options, *language):
    _add_stages(self, stages, options, *language)
    stages["elf"] = lambda cubin, metadata: cubin + b"{text}"


CUDABackend.add_stages = _with_another
_init = CUDABackend.__init__


def __init__(self, target):
    _init(self, target)
    self.binary_ext = "elf"


CUDABackend.__init__ = __init__
"""


def test_a_stage_after_the_machine_code(irdiff, newest: Toolchain, tmp_path: Path) -> None:
    sides = [
        edited_toolchain.make(newest, tmp_path / name, {NVIDIA: AFTER.replace("{text}", name)})
        for name in ("one", "other")
    ]
    for more in ((), ("--no-cache",)):
        made = irdiff("compare", *sides, *WORDS, *more)
        for case in made.run["cases"]:
            assert case["verdict"] == "changed"
