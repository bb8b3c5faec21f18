"""What is launched is compared: edits of launches that leave all code as it is, each a workload of one repository."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from irdiff.cli import cli
from irdiff.model import Toolchain
from tests import edited_toolchain
from tests.integration.commits.checkouts import commit, new_repository, write
from tests.integration.conftest import Result
from tests.texts import text_of

pytestmark = pytest.mark.integration

HEADER = text_of("what_is_launched/header.py")


ONCE = "scale[(4,)](x, out, 4096, BLOCK=1024)"
AGAIN = "scale[(4,)](out, other, 4096, BLOCK=1024)"
FILLED = ONCE.replace("out", 'tensor((4096,), "fp32")')
INTEGERS = 'scale[(4,)](tensor((4096,), "i32"), tensor((4096,), "i32"), 4096, BLOCK=1024)'
ENTERED = "triton.knobs.runtime.launch_enter_hook.add(lambda _: {})\n" + ONCE
DESCRIPTOR = 'copy[(1,)](TensorDescriptor(tensor((64, 64), "fp32"), [64, 64], [64, 1], [16, 64]{}), out)'
PAIR = (
    "from collections import namedtuple\npair[(4,)](namedtuple('Pair', 'source target')(x, out), BLOCK=1024)"
)


def tuned(
    hook: str = "None", blocks: str = "256, 512", key: str = "['n']", reset: str = "['out_ptr']"
) -> str:
    return (
        f"def hook(arguments):\n    {hook}\n"
        f"configs = [triton.Config({{'BLOCK': n}}, pre_hook={'None' if hook == 'None' else 'hook'}) for n in ({blocks})]\n"
        f"triton.autotune(configs, key={key}, reset_to_zero={reset})(scale)[(4,)](x, out, 4096)"
    )


DIFFERENT = {
    # name: base, head, a line of the difference
    "second_vanishes": (f"{ONCE}\n{AGAIN}", ONCE, "call 2"),
    "third_added": (f"{ONCE}\n{AGAIN}", f"{ONCE}\n{AGAIN}\n{AGAIN}", "call 3"),
    "grid": (ONCE, ONCE.replace("(4,)", "(1,)"), "grid: [1, 1, 1]"),
    "second_grid": (f"{ONCE}\n{AGAIN}", f"{ONCE}\n{AGAIN.replace('(4,)', '(1,)')}", "grid: [1, 1, 1]"),
    "scalar": (ONCE, ONCE.replace("4096", "16"), "argument 3: 16"),
    "alias": (ONCE, ONCE.replace("out, 4096", "x, 4096"), "storage 0"),
    "padding": (DESCRIPTOR.format(""), DESCRIPTOR.format(", padding='nan'"), "padding 'nan'"),
    "reset_to_zero": (tuned(), tuned(reset="None"), "reset_to_zero: []"),
    "config": (tuned(), tuned(blocks="256, 512, 1024"), "config: BLOCK 1024"),
    "key": (tuned(), tuned(key="[]"), "key: []"),
    "hook_of_a_config": (tuned("len(arguments)"), tuned("list(arguments)"), "config's hook"),
    "signedness": (INTEGERS, INTEGERS.replace("i32", "u32", 1), "argument 1: u32"),
    "order": (f"{ONCE}\n{tuned()}", f"{tuned()}\n{ONCE}", ""),
    "shape": (ONCE, ONCE.replace("(x, ", '(tensor((8192,), "fp32"), '), "fp32 [8192]"),
    "strides": (
        ONCE.replace("(x, ", '(tensor((64, 64), "fp32"), '),
        ONCE.replace("(x, ", '(tensor((64, 64), "fp32", strides=(128, 1)), '),
        "strides [128, 1]",
    ),
    "offset": (ONCE, ONCE.replace("(x, ", '(tensor((4096,), "fp32", offset=64), '), "offset 64"),
    "infinite": (
        ONCE.replace("4096", 'float("inf")'),
        ONCE.replace("4096", '-float("inf")'),
        "argument 3: -inf",
    ),
    "earlier_call": (
        f"{FILLED}\n{AGAIN.replace('(out', '(x')}",
        f"y = tensor((4096,), 'fp32')\n{FILLED}\n{AGAIN.replace('(out', '(y')}",
        "storage 0\n",
    ),
    "second_only_compiles": (
        f"{ONCE}\n{AGAIN}",
        f"{ONCE}\nscale.warmup(out, other, 4096, BLOCK=1024, grid=(4,))",
        "option warmup: True",
    ),
    "hook_of_launches": (ENTERED.format("len('a')"), ENTERED.format("len('b')"), "launch_enter_hook"),
}
SAME = {
    "comment_in_a_hook": (tuned("len(arguments)"), tuned("'A word.'\n    # and more\n    len(arguments)")),
    "named_tuple": ("pair[(4,)]((x, out), BLOCK=1024)", PAIR),
    "nothing": (ONCE, f"# a comment\n{ONCE}"),
    "another_name": (ONCE, "y = x\n" + ONCE.replace("(x, ", "(y, ")),
    "another_parameter": (ONCE, ONCE),
}


def workload(name: str, side: int) -> str:
    body = {**DIFFERENT, **SAME}[name][side]
    text = HEADER.replace("BODY", "\n".join(f"    {line}" for line in body.splitlines()))
    return text.replace("x_ptr", "input_ptr") if name == "another_parameter" and side else text


def test_each_edit_of_a_launch_is_changed_and_nothing_else(
    irdiff: Callable[..., Result], tmp_path: Path
) -> None:
    repo, run = new_repository(tmp_path / "kernels"), tmp_path / "run"
    toml = '[kernels]\nworkloads = "bench"\ntoolchain = "triton==3.9.0"\n'
    for side in (0, 1):
        files = {f"bench/edits/{name}.py": workload(name, side) for name in (*DIFFERENT, *SAME)}
        write(repo, {"irdiff.toml": toml, **files})
        commit(repo, f"Side {side}")
    done = irdiff("compare", "HEAD~1", "HEAD", "--target", "sm_90", "--out", str(run), cwd=repo)
    assert done.run is not None, done.stderr
    found: dict[str, dict[str, dict[str, Any]]] = {name: {} for name in (*DIFFERENT, *SAME)}
    for case in done.run["cases"]:
        found[case["workload"].partition("/")[2]][case["verdict"]] = case
    for name, by_verdict in found.items():
        allowed = {"unchanged", "changed", "added"} if name == "config" else {"unchanged", "changed"}
        assert by_verdict.keys() <= (allowed if name in DIFFERENT else {"unchanged"}), name
    for name, (_, _, says) in DIFFERENT.items():
        case = found[name]["changed"]
        assert case["origin"]["charged"] == ["program"], name
        if says:
            assert says in CliRunner().invoke(cli, ["diff", str(run), case["id"]]).output, name


RUNTIME = {
    "triton/runtime/jit.py": ("grid_0 = grid[0]", "grid_0 = grid[-1]"),
    "triton/runtime/autotuner.py": ("kwargs[name].zero_()", "pass"),
}


def test_a_runtime_that_launches_otherwise_is_named(
    irdiff: Callable[..., Result], newest: Toolchain, tmp_path: Path
) -> None:
    side = edited_toolchain.make(newest, tmp_path / "edited", dict.fromkeys(RUNTIME, ""), RUNTIME)
    done = irdiff("compare", "triton==3.9.0", side, "--target", "sm_90", "--case", "vector_add:fp32-odd")
    assert done.verdicts() == {"unchanged": 1}
    assert "the runtime differs" in done.stdout.splitlines()[0], done.stdout
    assert all(path in done.stdout for path in RUNTIME), done.stdout


def test_what_the_launcher_is_handed_is_compared(
    irdiff: Callable[..., Result], newest: Toolchain, tmp_path: Path
) -> None:
    """Packed metadata without shared memory, and the name of a symbol that is not there."""
    path = "triton/backends/nvidia/compiler.py"
    packed = (
        "\n\n_pack = CUDABackend.pack_metadata\nCUDABackend.pack_metadata = "
        "lambda self, metadata: tuple(0 if n == 2 else value for n, value in enumerate(_pack(self, metadata)))\n"
    )
    symbol = ('metadata["name"] = names[0]', 'metadata["name"] = names[0] + "_not_there"')
    side = edited_toolchain.make(newest, tmp_path / "edited", {path: packed}, {path: symbol})
    words = ("--target", "sm_90", "--case", "softmax:fp16-4k", "--no-recheck")
    done = irdiff("compare", "triton==3.9.0", side, *words)
    (case,) = done.run["cases"]
    assert (case["verdict"], case["origin"]["charged"]) == ("changed", ["runtime"])
    (row,) = (row for row in case["findings"] if row.startswith("launch-differs:"))
    assert "packed" in row and "symbol" in row
