"""What a program of torch launches is compared: each edit is a program of one repository."""

from pathlib import Path

import pytest

from irdiff.resolve import corpus, packs
from tests.programs.checkouts import commit, new_repository, write
from tests.unit.golden import golden

ROOT = Path(__file__).parents[2]
GOLDEN = golden("torch-launches")
EDITS = {**GOLDEN["same"], **GOLDEN["different"]}
TOML = """\
[kernels]
program = {}
targets = ["sm_90"]
toolchain = "triton==3.9.0"
packages = ["numpy", "packaging", "torch==2.13.0", "typing-extensions"]
"""


@pytest.mark.wide
def test_each_edit_of_a_program_of_torch(irdiff, tmp_path):
    repo = new_repository(tmp_path / "kernels")
    toml = TOML.format([f"programs/{name}.py" for name in EDITS])
    for side in (0, 1):
        files = {f"programs/{name}.py": GOLDEN["head"]["text"] + ends[side] for name, ends in EDITS.items()}
        write(repo, {"irdiff.toml": toml, **files})
        commit(repo, f"Side {side}")
    done = irdiff("compare", "HEAD~1", "HEAD", cwd=repo)
    assert done.run is not None, done.stderr
    verdicts = {name: set() for name in EDITS}
    for case in done.run["cases"]:
        verdicts[case["workload"].rpartition("/")[2]].add(case["verdict"])
    wrong = {
        name: found
        for name, found in verdicts.items()
        if not found or (found == {"unchanged"}) != (name in GOLDEN["same"])
    }
    assert wrong == {}


PACK = """\
summary = "A function of torch.compile that is not captured itself"
python = "3.10"
kernels = []
imports = ["torch"]
packages = [{}]
"""
SORTED = (
    GOLDEN["head"]["text"].partition("x, y, z")[0]
    + """
from irdiff_corpus import launch

@torch.compile(fullgraph=True, dynamic=True)
def order(x): return torch.argsort(x).to(torch.int32)

class Sum(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        context.save_for_backward(run(x, x))
        return x.sum()

    @staticmethod
    def backward(context, gradient):
        (x,) = context.saved_tensors
        return run(x, order(x))

def entry(): Sum.apply(torch.randn(4096, device="cuda", requires_grad=True)).backward()

LAUNCHES = {"sorted": launch(entry)}
"""
)


@pytest.mark.wide
def test_torch_compile_does_not_trace_what_irdiff_notes(irdiff, tmp_path):
    pins = [f'"{pin}"' for pin in packs.read(ROOT / "corpus" / corpus.PACKS / "torch_compile").packages]
    write(
        tmp_path / corpus.PACKS / "sorting", {"pack.toml": PACK.format(", ".join(pins)), "sorted.py": SORTED}
    )
    done = irdiff("corpus", "list", "--corpus", str(tmp_path), "--pack", "sorting", "--target", "sm_90")
    assert "not captured" not in done.stderr, done.stderr
    assert "sorting/sorted:sorted/sub#2" in done.stdout, done.stdout
