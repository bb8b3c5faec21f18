"""Files that users write: `tests/golden/mistakes.toml` has right ones, and mistakes with the words that name them."""

import tomllib
from pathlib import Path

import pytest

from irdiff.errors import CorpusError, UsageError
from irdiff.gate import acceptance, policy
from irdiff.resolve import kernel_repository, packs, targets

GOLDEN = tomllib.loads((Path(__file__).parents[1] / "golden" / "mistakes.toml").read_text())
READERS = {
    "policy": policy.load,
    "accepted": acceptance.load,
    "pack": lambda path: packs.read(path.parent),
    "target": targets.load,
    "plan": lambda path: kernel_repository.parse_plan(path.read_bytes(), path.name),
}


@pytest.mark.parametrize("row", GOLDEN["mistake"], ids=lambda row: f"{row['file']}: {row['new'][:30]!r}")
def test_a_right_file_is_read_and_a_mistake_is_named(row, tmp_path):
    path, right = tmp_path / f"{row['file']}.toml", GOLDEN["right"][row["file"]]
    path.write_text(right)
    READERS[row["file"]](path)
    assert row["old"] in right
    path.write_text(right.replace(row["old"], row["new"]))
    with pytest.raises((UsageError, CorpusError)) as caught:
        READERS[row["file"]](path)
    assert row["words"] in str(caught.value)


@pytest.mark.parametrize(
    "content", [b"a = " + b"[" * 100_000, b"\xff", b"#" * (2 << 20)], ids=["deep", "no text", "large"]
)
@pytest.mark.parametrize("name", READERS)
def test_a_hostile_file_is_refused(name, content, tmp_path):
    (tmp_path / f"{name}.toml").write_bytes(content)
    with pytest.raises((UsageError, CorpusError)):
        READERS[name](tmp_path / f"{name}.toml")
