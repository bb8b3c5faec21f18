"""A run shows what differs in Triton's files that run at a launch."""

import hashlib

import pytest

from irdiff.compare import runtime
from irdiff.model import RuntimeFile, Sides

JIT, NVIDIA, AMD = (
    f"triton/{name}" for name in ("runtime/jit.py", "backends/nvidia/driver.c", "backends/amd/driver.c")
)
TEXTS = {JIT: "def run():\n    launch(x, y, z)\n", NVIDIA: "cuda\n", AMD: "hip\n"}


def files(folder, texts):
    found = {}
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        found[name] = RuntimeFile(hashlib.sha256(text.encode()).hexdigest(), str(path))
    return found


@pytest.mark.parametrize(
    ("name", "backends", "is_shown"),
    [(JIT, ["cuda"], True), (NVIDIA, ["cuda"], True), (AMD, ["cuda"], False), (AMD, ["cuda", "hip"], True)],
)
@pytest.mark.parametrize("is_gone", [False, True])
def test_the_files_of_a_backend_without_a_target_do_not_count(tmp_path, name, backends, is_shown, is_gone):
    others = {row: text for row, text in TEXTS.items() if row != name or not is_gone}
    changed = others if is_gone else {**TEXTS, name: "other\n"}
    sides = Sides(base=files(tmp_path / "base", TEXTS), head=files(tmp_path / "head", changed))
    found = runtime.edits(sides, backends)
    assert [row.path for row in found] == [name] * is_shown
    assert [name in note for note in runtime.notes(found)] == [True] * is_shown


def test_the_diff_is_that_of_the_texts(tmp_path):
    swapped = {**TEXTS, JIT: "def run():\n    launch(y, x, z)\n"}
    sides = Sides(base=files(tmp_path / "base", TEXTS), head=files(tmp_path / "head", swapped))
    (found,) = runtime.edits(sides, ["cuda"])
    assert found.diff[1:] == (" def run():", "-    launch(x, y, z)", "+    launch(y, x, z)")


def test_a_long_diff_is_cut_and_says_so(tmp_path):
    sides = Sides(base=files(tmp_path / "b", {JIT: ""}), head=files(tmp_path / "h", {JIT: "line\n" * 9_000}))
    (found,) = runtime.edits(sides, ["cuda"])
    assert len(found.diff) == runtime.MAX_LINES + 1
    assert found.diff[-1] == f"… {9_001 - runtime.MAX_LINES} more lines"
