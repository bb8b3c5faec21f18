"""What a launch passes on: entries of the metadata, values that are packed, and the runtime of the toolchain."""

import hashlib
import json
from operator import itemgetter

import pytest

from irdiff.compare import launchers, runtime
from irdiff.compare.launchers import NEUTRAL
from irdiff.model import RuntimeFile, Sides
from tests.unit import runs
from tests.unit.golden import GOLDEN, golden

METADATA = json.loads((GOLDEN / "launch-metadata.json").read_text())
"""As releases write it, and entries with another value."""
V3_4, V3_9 = METADATA["3.4"], METADATA["3.9"]


@pytest.mark.parametrize(("name", "value"), METADATA["others"])
@pytest.mark.parametrize("other", [V3_4, V3_9], ids=["3.4", "3.9"])
def test_an_entry_counts(other, name, value):
    """What an older release does not write is what its launcher passes."""
    assert launchers.metadata_differing(other, V3_9) == launchers.metadata_differing(V3_9, other) == ()
    assert launchers.metadata_differing(other, {**V3_9, name: value}) == (name,)
    assert name not in NEUTRAL


def test_what_is_not_known_of_a_side_differs():
    assert launchers.metadata_differing(V3_9, {**V3_9, "num_ctas": 1}) == ("cluster_dims", "num_ctas")
    assert launchers.metadata_differing({}, {"shared": 0}) == ("shared",)
    assert launchers.metadata_differing({"target": "?"}, {"target": "?", "warp_size": 32}) == ("warp_size",)


@pytest.mark.parametrize("name", sorted(NEUTRAL))
def test_a_neutral_entry_does_not_count(name):
    assert launchers.metadata_differing({**V3_9, name: "one"}, {**V3_9, name: "another"}) == ()
    without = {key: value for key, value in V3_9.items() if key != name}
    assert launchers.metadata_differing(without, {**V3_9, name: "another"}) == ()


SAME, OTHER = ({"triton/runtime/jit.py": RuntimeFile(digest, "")} for digest in "12")


@pytest.mark.parametrize("row", golden("verdicts")["packed"], ids=itemgetter("why"))
def test_packed_values_are_compared_one_by_one(row):
    """Launchers that take another number of values are other files, of which the run has a note."""
    runtimes = Sides(base=SAME, head=OTHER if row["other_runtime"] else SAME)
    base, head = row["base"], row.get("head")
    ours, theirs = (
        runs.compiled(launcher_args={"packed": packed} if packed else {}) for packed in (base, head)
    )
    found = launchers.packed_differs(Sides(base=ours, head=theirs), runtimes, "cuda")
    assert found == (("packed",) if row["differs"] else ())
    assert row["differs"] or base == head or head is None or runtime.differing(runtimes, ["cuda"])


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
