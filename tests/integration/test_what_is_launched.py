"""What is launched is compared: edits of launches that leave all code as it is, all in one repository.

Each edit is a workload of its own. They are compared by default, with a warm cache and with `--no-cache`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from irdiff.model import Toolchain
from tests import edited_toolchain
from tests.integration.conftest import Result

sys.path.insert(0, str(Path(__file__).parent / "commits"))
from checkouts import commit, new_repository, write

pytestmark = pytest.mark.integration

HEADER = """import triton
import triton.language as tl
from irdiff_corpus import empty, launch, tensor
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def scale(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask), mask=mask)


@triton.jit
def pair(tensors, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(tensors[1] + offsets, tl.load(tensors[0] + offsets))


@triton.jit
def copy(x_desc, out_ptr):
    tile = x_desc.load([0, 0])
    offsets = tl.arange(0, 16)[:, None] * 64 + tl.arange(0, 64)[None, :]
    tl.store(out_ptr + offsets, tile)


@triton.autotune([triton.Config({"BLOCK": n}) for n in BLOCKS], key=KEY, reset_to_zero=RESET)
@triton.jit
def tuned(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask), mask=mask)


x, out = tensor((4096,), "fp32"), empty((4096,), "fp32")
other = empty((4096,), "fp32")


def run():
BODY

LAUNCHES = {"case": launch(run)}
"""


@dataclass(frozen=True, kw_only=True)
class Edit:
    base: str
    head: str
    key: tuple[str, str] = ('["n"]', '["n"]')
    reset: tuple[str, str] = ('["out_ptr"]', '["out_ptr"]')
    blocks: tuple[str, str] = ("(256, 512)", "(256, 512)")
    renamed: bool = False
    """Whether head's kernel has another name for a parameter."""
    says: str
    """A line of the difference."""

    def source(self, side: int) -> str:
        body = "\n".join(f"    {line}" for line in (self.base, self.head)[side].splitlines())
        text = HEADER.replace("BODY", body)
        text = text.replace("x_ptr", "input_ptr") if self.renamed and side else text
        text = text.replace("BLOCKS", self.blocks[side])
        return text.replace("KEY", self.key[side]).replace("RESET", self.reset[side])


ONCE = "scale[(4,)](x, out, 4096, BLOCK=1024)"
AGAIN = "scale[(4,)](out, other, 4096, BLOCK=1024)"
TUNED = "tuned[(4,)](x, out, 4096)"
FILLED = ONCE.replace("out", 'tensor((4096,), "fp32")')
HOOKED = """def hook(arguments):
    {}
configs = [triton.Config({{"BLOCK": 256}}, pre_hook=hook), triton.Config({{"BLOCK": 512}}, pre_hook=hook)]
triton.autotune(configs, key=[])(scale)[(4,)](x, out, 4096)"""
ENTERED = "triton.knobs.runtime.launch_enter_hook.add(lambda _: {})\n" + ONCE
DESCRIPTOR = 'copy[(1,)](TensorDescriptor(tensor((64, 64), "fp32"), [64, 64], [64, 1], [16, 64]{}), out)'
EDITS = {
    "second_vanishes": Edit(base=f"{ONCE}\n{AGAIN}", head=ONCE, says="call 2"),
    "third_added": Edit(base=f"{ONCE}\n{AGAIN}", head=f"{ONCE}\n{AGAIN}\n{AGAIN}", says="call 3"),
    "grid": Edit(base=ONCE, head=ONCE.replace("(4,)", "(1,)"), says="grid: [1, 1, 1]"),
    "second_grid": Edit(
        base=f"{ONCE}\n{AGAIN}", head=f"{ONCE}\n{AGAIN.replace('(4,)', '(1,)')}", says="grid: [1, 1, 1]"
    ),
    "scalar": Edit(base=ONCE, head=ONCE.replace("4096", "16"), says="argument 3: 16"),
    "alias": Edit(base=ONCE, head=ONCE.replace("out, 4096", "x, 4096"), says="storage 0"),
    "padding": Edit(
        base=DESCRIPTOR.format(""), head=DESCRIPTOR.format(', padding="nan"'), says="padding 'nan'"
    ),
    "reset_to_zero": Edit(base=TUNED, head=TUNED, reset=('["out_ptr"]', "None"), says="reset_to_zero: []"),
    "config": Edit(
        base=TUNED, head=TUNED, blocks=("(256, 512)", "(256, 512, 1024)"), says="config: BLOCK 1024"
    ),
    "key": Edit(base=TUNED, head=TUNED, key=('["n"]', "[]"), says="key: []"),
    "signedness": Edit(
        base='scale[(4,)](tensor((4096,), "i32"), tensor((4096,), "i32"), 4096, BLOCK=1024)',
        head='scale[(4,)](tensor((4096,), "u32"), tensor((4096,), "i32"), 4096, BLOCK=1024)',
        says="argument 1: u32",
    ),
    "order": Edit(base=f"{ONCE}\n{TUNED}", head=f"{TUNED}\n{ONCE}", says=""),
    "shape": Edit(base=ONCE, head=ONCE.replace("(x, ", '(tensor((8192,), "fp32"), '), says="fp32 [8192]"),
    "strides": Edit(
        base='scale[(4,)](tensor((64, 64), "fp32"), out, 4096, BLOCK=1024)',
        head='scale[(4,)](tensor((64, 64), "fp32", strides=(128, 1)), out, 4096, BLOCK=1024)',
        says="strides [128, 1]",
    ),
    "offset": Edit(
        base=ONCE,
        head='scale[(4,)](tensor((4096,), "fp32", offset=64), out, 4096, BLOCK=1024)',
        says="offset 64",
    ),
    "infinite": Edit(
        base=ONCE.replace("4096", 'float("inf")'),
        head=ONCE.replace("4096", '-float("inf")'),
        says="argument 3: -inf",
    ),
    "earlier_call": Edit(
        base=f"{FILLED}\nscale[(4,)](x, other, 4096, BLOCK=1024)",
        head=f"y = tensor((4096,), 'fp32')\n{FILLED}\nscale[(4,)](y, other, 4096, BLOCK=1024)",
        says="storage 0\n",
    ),
    "second_only_compiles": Edit(
        base=f"{ONCE}\n{AGAIN}",
        head=f"{ONCE}\nscale.warmup(out, other, 4096, BLOCK=1024, grid=(4,))",
        says="option warmup: True",
    ),
    "hook_of_a_config": Edit(
        base=HOOKED.format("len(arguments)"), head=HOOKED.format("list(arguments)"), says="config's hook"
    ),
    "hook_of_launches": Edit(
        base=ENTERED.format("len('a')"), head=ENTERED.format("len('b')"), says="launch_enter_hook"
    ),
    "comment_in_a_hook": Edit(
        base=HOOKED.format("len(arguments)"),
        head=HOOKED.format("'A word.'\n    # and another\n    len(arguments)"),
        says="",
    ),
    "named_tuple": Edit(
        base="pair[(4,)]((x, out), BLOCK=1024)",
        head="from collections import namedtuple\n"
        'pair[(4,)](namedtuple("Pair", "source target")(x, out), BLOCK=1024)',
        says="",
    ),
    "nothing": Edit(base=ONCE, head=f"# a comment\n{ONCE}", says=""),
    "another_name": Edit(base=ONCE, head="y = x\n" + ONCE.replace("(x, ", "(y, "), says=""),
    "another_parameter": Edit(base=ONCE, head=ONCE, renamed=True, says=""),
}
SAME = (
    "nothing",
    "another_name",
    "another_parameter",
    "comment_in_a_hook",
    "named_tuple",
)


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    repo = new_repository(tmp_path_factory.mktemp("launched") / "kernels")
    toml = '[kernels]\nworkloads = "bench"\ntoolchain = "triton==3.9.0"\n'
    for side in (0, 1):
        files = {f"bench/edits/{name}.py": edit.source(side) for name, edit in EDITS.items()}
        write(repo, {"irdiff.toml": toml, **files})
        commit(repo, f"Side {side}")
    return repo


def compared(irdiff: Callable[..., Result], kernels: Path, *words: str) -> dict[str, list[dict[str, object]]]:
    done = irdiff("compare", "HEAD~1", "HEAD", "--target", "sm_90", *words, cwd=kernels)
    assert done.run is not None, done.stderr
    found: dict[str, list[dict[str, object]]] = {}
    for case in done.run["cases"]:
        found.setdefault(case["workload"].partition("/")[2], []).append(case)
    return found


def test_each_edit_of_a_launch_is_changed_and_nothing_else(
    irdiff: Callable[..., Result], kernels: Path, tmp_path: Path
) -> None:
    default = compared(irdiff, kernels, "--out", str(tmp_path / "run"))
    found = {
        name: {(case["verdict"], tuple((case["origin"] or {}).get("charged", ()))) for case in rows}
        for name, rows in default.items()
    }
    for name in EDITS:
        wanted = ("unchanged", ()) if name in SAME else ("changed", ("program",))
        assert wanted in found[name], (name, found[name])
        others = {("added", ())} if name == "config" else set()
        assert found[name] - others <= {wanted, ("unchanged", ())}, (name, found[name])
    for words in ((), ("--no-cache", "--no-recheck")):
        again = compared(irdiff, kernels, *words)
        assert {name: sorted(case["verdict"] for case in rows) for name, rows in again.items()} == {
            name: sorted(case["verdict"] for case in rows) for name, rows in default.items()
        }
    for name, edit in EDITS.items():
        if edit.says:
            shown = irdiff(
                "diff",
                str(tmp_path / "run"),
                next(c["id"] for c in default[name] if c["verdict"] == "changed"),
                cwd=kernels,
            )
            assert edit.says in shown.stdout, (name, shown.stdout, shown.stderr)


RUNTIME = {
    "axes_swapped": ("triton/runtime/jit.py", "grid_0 = grid[0]", "grid_0 = grid[-1]"),
    "not_zeroed": ("triton/runtime/autotuner.py", "kwargs[name].zero_()", "pass"),
}


@pytest.mark.parametrize("name", RUNTIME)
def test_a_runtime_that_launches_otherwise_is_named(
    irdiff: Callable[..., Result], newest: Toolchain, tmp_path: Path, name: str
) -> None:
    path, before, after = RUNTIME[name]
    side = edited_toolchain.make(newest, tmp_path / "edited", {path: ""}, {path: (before, after)})
    done = irdiff("compare", "triton==3.9.0", side, "--target", "sm_90", "--case", "vector_add:fp32-odd")
    assert done.verdicts() == {"unchanged": 1}
    assert "the runtime differs" in done.stdout.splitlines()[0], done.stdout
    assert path in done.stdout


HANDED = {
    "no_shared_memory": ("metadata.shared,\n", "0,\n", "packed"),
    "no_symbol": (
        'metadata["name"] = names[0]',
        'metadata["name"] = names[0] + "_not_there"',
        "symbol",
    ),
}


@pytest.mark.parametrize("name", HANDED)
def test_what_the_launcher_is_handed_is_compared(
    irdiff: Callable[..., Result], newest: Toolchain, tmp_path: Path, name: str
) -> None:
    before, after, entry = HANDED[name]
    path = "triton/backends/nvidia/compiler.py"
    side = edited_toolchain.make(newest, tmp_path / "edited", {path: ""}, {path: (before, after)})
    done = irdiff(
        "compare", "triton==3.9.0", side, "--target", "sm_90", "--case", "softmax:fp16-4k", "--no-recheck"
    )
    (case,) = done.run["cases"]
    assert (case["verdict"], case["origin"]["charged"]) == ("changed", ["runtime"])
    assert any(row.startswith("launch-differs:") and entry in row for row in case["findings"])
