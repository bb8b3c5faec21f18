from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from irdiff.cli.store import parse_size, store_group
from irdiff.errors import StoreError, UsageError
from irdiff.store import Store, key_of


def test_round_trip(tmp_path: Path) -> None:
    store = Store(tmp_path)
    digest = store.put(b"text" * 1000)
    assert store.get(digest) == b"text" * 1000
    assert store.has(digest)
    assert store.get("0" * 64) is None


@pytest.mark.parametrize("damage", [b"", b"garbage", None])
def test_damaged_object_counts_as_absent(tmp_path: Path, damage: bytes | None) -> None:
    store = Store(tmp_path)
    digest, other = store.put(b"one"), store.put(b"two")
    path = store.object_path(digest)
    # None: whole and valid, but another artifact's content
    path.write_bytes(store.object_path(other).read_bytes() if damage is None else damage)
    assert store.get(digest) is None
    assert not path.exists()
    assert store.put(b"one") == digest
    assert store.get(digest) == b"one"


@pytest.mark.parametrize("edit", [lambda text: text[:-3], lambda text: text.replace("1", "2"), lambda _: ""])
def test_damaged_record_counts_as_absent(tmp_path: Path, edit) -> None:
    store = Store(tmp_path)
    key = key_of("a")
    store.put_record("kind", key, {"value": 1})
    path = tmp_path / "records" / "kind" / key[:2] / key[2:]
    checksum, body = path.read_text().split("\n")
    path.write_text(checksum + "\n" + edit(body))
    assert store.get_record("kind", key) is None


def test_a_checksum_is_of_what_a_record_says(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert store.checksum("compile", "0" * 64) is None
    for key, value in (("1", [1]), ("2", [1]), ("3", [2])):
        store.put_record("compile", key * 64, value)
    one, same, other = (store.checksum("compile", key * 64) for key in "123")
    assert one == same != other
    path = next((tmp_path / "records" / "compile" / "33").iterdir())
    path.write_bytes(path.read_bytes()[:-1] + b" ")
    assert store.checksum("compile", "3" * 64) is None
    assert not path.exists()


def test_key_depends_on_every_part() -> None:
    keys = {
        key_of("a", 1),
        key_of("a", 2),
        key_of("a", "1"),
        key_of("a1"),
        key_of(["a", 1]),
        key_of("a", [1]),
    }
    assert len(keys) == 6


def test_read_only_store_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "objects").write_text("a file where a folder should be")
    with pytest.raises(StoreError, match="cannot be written") as raised:
        Store(tmp_path).put(b"x")
    assert "irdiff store prune" in raised.value.hint


def test_prune_keeps_within_bound(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for number in range(50):
        store.put(bytes([number]) * 50 + number.to_bytes(4, "big") * 50)
    before = store.usage()
    freed = store.prune(before.size_bytes // 2)
    assert 0 < store.usage().size_bytes <= before.size_bytes // 2
    assert freed == before.size_bytes - store.usage().size_bytes


def test_scratch_paths_have_one_length(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with store.scratch() as first, store.scratch() as second:
        assert first != second
        assert len(str(first)) == len(str(second))
    assert not first.exists()


@pytest.mark.parametrize(
    ("text", "size"), [("2GB", 2 << 30), ("1.5 MiB", 3 << 19), ("10B", 10), ("3k", 3072)]
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["many", "", "-2GB", "2GBs", "2 2GB", "B"])
def test_bad_size(text: str) -> None:
    with pytest.raises(UsageError, match="is not a size"):
        parse_size(text)


@pytest.mark.parametrize(("text", "likely"), [("2", "2GB"), ("0.5", "0.5GB"), ("500", "500MB"), ("0", "0GB")])
def test_a_number_without_a_unit_is_refused(text: str, likely: str) -> None:
    with pytest.raises(UsageError, match="has no unit") as raised:
        parse_size(text)
    assert raised.value.hint == f"--max-size {likely}?"


def test_a_size_without_a_unit_empties_nothing(tmp_path: Path) -> None:
    Store(tmp_path / "store").put(b"one")
    before = sorted(tmp_path.rglob("*"))
    words = ["--max-size", "2", "--cache", str(tmp_path)]
    with pytest.raises(UsageError):
        CliRunner().invoke(store_group, ["prune", *words], standalone_mode=False, catch_exceptions=False)
    assert sorted(tmp_path.rglob("*")) == before


FOREIGN = {
    "objects/readme.txt": b"mine",
    "objects/ab/notes": b"mine",
    "objects/" + "ab/" + "0" * 62: b"a file of this very name, and not packed as the store packs",
    "objects/pack/pack-1.idx": b"of git",
    "records/2024/invoice.pdf": b"mine",
    "records/kind/ab/" + "c" * 62: b"no record",
    "tmp/2024-report/text.txt": b"mine",
    "tmp/20240101-20240201/text.txt": b"mine",
    "tmp/notes.txt": b"mine",
    "elsewhere.txt": b"mine",
}


def test_prune_removes_nothing_that_the_store_did_not_make(tmp_path: Path) -> None:
    for name, content in FOREIGN.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    outside = tmp_path.with_name(f"{tmp_path.name}-outside")
    outside.mkdir()
    (outside / "file").write_bytes(b"mine")
    (tmp_path / "tmp" / "09999998-00000001").symlink_to(outside)
    (tmp_path / "objects" / "ef").mkdir()
    (tmp_path / "objects" / "ef" / ("1" * 62)).symlink_to(outside / "file")
    store = Store(tmp_path)
    digest = store.put(b"one")
    store.put_record("kind", key_of("a"), {"value": 1})
    (tmp_path / "tmp" / "09999999-00000001").mkdir()
    store.prune(0)
    assert not store.has(digest)
    assert store.get_record("kind", key_of("a")) is None
    assert not (tmp_path / "tmp" / "09999999-00000001").exists(), "of a process that is gone"
    assert {name: (tmp_path / name).read_bytes() for name in FOREIGN} == FOREIGN
    assert (outside / "file").read_bytes() == b"mine"
