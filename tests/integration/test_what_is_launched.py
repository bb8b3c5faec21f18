"""What is launched is compared: edits of launches that leave all code as it is, each a workload of one repository."""

import re
from pathlib import Path
from textwrap import indent

from click.testing import CliRunner

from irdiff.cli import cli
from tests.programs import edited_toolchain
from tests.programs.checkouts import commit, new_repository, write
from tests.texts import text_of
from tests.unit.golden import golden

HEADER = text_of("what_is_launched/header.py.template")


DIFFERENT, SAME = ({row["name"]: row for row in golden("launches")[kind]} for kind in ("different", "same"))


def workload(name, side):
    body = {**DIFFERENT, **SAME}[name][("base", "head")[side]]
    text = HEADER.replace("BODY", "\n".join(f"    {line}" for line in body.splitlines()))
    return text.replace("x_ptr", "input_ptr") if name == "another_parameter" and side else text


def test_each_edit_of_a_launch_is_changed_and_nothing_else(irdiff, tmp_path):
    repo, run = new_repository(tmp_path / "kernels"), tmp_path / "run"
    toml = '[kernels]\nworkloads = "bench"\ntoolchain = "triton==3.9.0"\n'
    for side in (0, 1):
        files = {f"bench/edits/{name}.py": workload(name, side) for name in (*DIFFERENT, *SAME)}
        write(repo, {"irdiff.toml": toml, **files})
        commit(repo, f"Side {side}")
    done = irdiff("compare", "HEAD~1", "HEAD", "--target", "sm_90", "--out", str(run), cwd=repo)
    assert done.run is not None, done.stderr
    found = {name: {} for name in (*DIFFERENT, *SAME)}
    for case in done.run["cases"]:
        found[case["workload"].partition("/")[2]][case["verdict"]] = case
    for name, by_verdict in found.items():
        allowed = {"unchanged", "changed", "added"} if name == "config" else {"unchanged", "changed"}
        assert by_verdict.keys() <= (allowed if name in DIFFERENT else {"unchanged"}), name
    for name, row in DIFFERENT.items():
        case = found[name]["changed"]
        assert case["origin"]["charged"] == ["program"], name
        if says := row.get("says"):
            assert says in CliRunner().invoke(cli, ["diff", str(run), case["id"]]).output, name


UNSEEN = text_of("what_is_launched/unseen.py.template")
"""Each line that is a comment says the note of the line below."""


def test_what_is_not_seen_is_named_and_never_equal(irdiff, tmp_path):
    repo, run = new_repository(tmp_path / "kernels"), tmp_path / "run"
    toml = '[kernels]\nworkloads = "bench"\ntoolchain = "triton==3.9.0"\n'
    text = HEADER.replace("BODY", indent(UNSEEN, "    "))
    for side in (0, 1):
        write(repo, {"irdiff.toml": toml, "bench/edits/unseen.py": f"{text}# {side}\n"})
        commit(repo, f"Side {side}")
    done = irdiff("compare", "HEAD~1", "HEAD", "--target", "sm_90", "--out", str(run), cwd=repo)
    notes = [(number, line) for number, line in enumerate(text.splitlines(), 2) if line.startswith("    # ")]
    assert notes
    for number, line in notes:
        said = "".join(row for row in done.stdout.splitlines() if line.removeprefix("    # ") in row)
        assert re.search(rf"unseen.py:(\d+, )*{number}\b", said), (line, done.stdout)
    opening, *rest = done.stdout.splitlines()
    assert opening.count("starts another Python process: what that launches was not compared.") == 1, opening
    assert sum("/unseen.py:" in row for row in rest) == len({line for _, line in notes})
    unseen = [
        row for row in done.run["cases"] if any("launch-not-compared" in each for each in row["findings"])
    ]
    assert {row["verdict"] for row in unseen} == {"changed"}
    assert len(unseen) == done.verdicts()["changed"] == 3
    assert "The launch of 3 could not be compared." in done.stdout, done.stdout


GENERATES = text_of("what_is_launched/generates.py.template")
STARTS = """\
    import os, subprocess
    subprocess.run(["git", "--version"])
    os.system("make --version")
    scale[(4,)](x, out, 4096, BLOCK=1024)
"""
OWN = {"home": "os.path.expanduser('~')", "temporary": "tempfile.gettempdir()"}


def test_no_side_sees_what_the_other_one_wrote(irdiff, tmp_path):
    """Each workload launches the kernel that lies in a folder, and writes it there if there is none."""
    repo, run, shared = new_repository(tmp_path / "kernels"), tmp_path / "run", tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    toml = '[kernels]\nworkloads = "bench"\ntoolchain = "triton==3.9.0"\n'
    for value in ("+ 1.0", "* 2.0"):
        text = GENERATES.replace("VALUE", value)
        places = {**OWN, "shared": repr(str(shared))}
        files = {f"bench/w/{name}.py": text.replace("FOLDER", place) for name, place in places.items()}
        # the name of a kernel's file is part of its code where an assertion is compiled
        files["bench/w/alike.py"] = GENERATES.replace("VALUE", "+ 1.0").replace("FOLDER", OWN["home"])
        write(repo, {"irdiff.toml": toml, "bench/w/starts.py": HEADER.replace("BODY", STARTS), **files})
        commit(repo, value)
    for _ in range(2):  # what the first run leaves is seen by the second one
        done = irdiff("compare", "HEAD~1", "HEAD", "--target", "sm_90", "--out", str(run), cwd=repo)
        verdicts = {case["workload"]: case["verdict"] for case in done.run["cases"]}
        own = {f"w/{name}": "changed" for name in OWN}
        others = dict.fromkeys(("w/alike", "w/shared", "w/starts"), "unchanged")
        assert verdicts == {**own, **others}, done.stdout
        opening = done.stdout.splitlines()[0]
        place = "/tmp/[^ ]+" if str(tmp_path).startswith("/tmp/") else re.escape(str(shared))
        assert re.search(f"shared.py:[0-9, ]+ uses {place}, which both sides and other runs share", opening)
        assert re.search(r"starts.py:\d+ starts make: what that launches was not compared", opening)
        assert "home.py:" not in opening and "temporary.py:" not in opening
    assert not (Path.home() / "generated-by-a-test").exists()


RUNTIME = {
    "triton/runtime/jit.py": ("grid_0 = grid[0]", "grid_0 = grid[-1]"),
    "triton/runtime/autotuner.py": ("kwargs[name].zero_()", "pass"),
    "triton/tools/tensor_descriptor.py": ('padding: str = "zero"', 'padding: str = "nan"'),
    "triton/experimental/gluon/__init__.py": ("", "# who knows what it replaces\n"),
}


def test_a_runtime_that_launches_otherwise_is_named(irdiff, newest, tmp_path):
    side = edited_toolchain.make(newest, tmp_path / "edited", dict.fromkeys(RUNTIME, ""), RUNTIME)
    done = irdiff("compare", "triton==3.9.0", side, "--target", "sm_90", "--case", "vector_add:fp32-odd")
    assert done.verdicts() == {"unchanged": 1}
    assert "Files of Triton that run at a launch differ" in done.stdout.splitlines()[0], done.stdout
    assert all(path in done.stdout for path in RUNTIME), done.stdout


def test_what_the_launcher_is_handed_is_compared(irdiff, newest, tmp_path):
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
