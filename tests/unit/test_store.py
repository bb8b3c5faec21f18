from __future__ import annotations

from pathlib import Path

import pytest

from irdiff.cli.store import parse_size
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


@pytest.mark.parametrize(("text", "size"), [("2GB", 2 << 30), ("1.5 MiB", 3 << 19), ("10", 10), ("3k", 3072)])
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


def test_bad_size() -> None:
    with pytest.raises(UsageError):
        parse_size("many")
