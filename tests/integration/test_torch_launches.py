"""What a program of torch launches is compared: each edit is a program of one repository."""

import pytest

from tests.programs.checkouts import commit, new_repository, write
from tests.unit.golden import golden

GOLDEN = golden("torch-launches")
EDITS = {**GOLDEN["same"], **GOLDEN["different"]}
TOML = """\
[kernels]
program = [{}]
targets = ["sm_90"]
toolchain = "triton==3.9.0"
packages = ["numpy", "packaging", "torch==2.13.0", "typing-extensions"]
"""


@pytest.mark.wide
def test_each_edit_of_a_program_of_torch(irdiff, tmp_path):
    repo = new_repository(tmp_path / "kernels")
    toml = TOML.format(", ".join(f'"programs/{name}.py"' for name in EDITS))
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
        if (found == {"unchanged"}) != (name in GOLDEN["same"])
    }
    assert wrong == {}
