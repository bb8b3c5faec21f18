import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from irdiff.cli.store_commands import store_group
from irdiff.errors import StoreError, UsageError
from irdiff.store import Store, code, key_of
from irdiff.worker.compile import assembling
from tests.texts import text_of
from tests.unit.typed import typed

KEY, OTHER = key_of("a"), key_of("b")
DAY_S = 86400


def in_file(store, statement, *values):
    """Something else writes into the file of records."""
    with sqlite3.connect(store.root / "records-1.sqlite3") as connection:
        connection.execute(statement, values)
    connection.close()


def processes(folder, script, count=1):
    """Processes that use the store of a folder."""
    head = f"import signal, sys; from pathlib import Path; from irdiff.store import Store; store = Store(Path({str(folder)!r}))\n"
    return [
        subprocess.Popen([sys.executable, "-c", head + script, str(n)], stdout=subprocess.PIPE, text=True)
        for n in range(count)
    ]


def test_round_trip(tmp_path):
    store = Store(tmp_path / "new")
    assert store.get("0" * 64) is None and not store.has("0" * 64)
    assert store.get_record("kind", KEY) is None
    assert (store.usage().size_bytes, store.remove_damaged()) == (0, [])
    assert not store.root.exists(), "what is absent makes no file"
    digest = store.put(b"text" * 1000)
    store.put_record("kind", KEY, {"b": [1, None], "a": "é"})
    for same in (store, Store(tmp_path / "new")):
        assert same.get(digest) == b"text" * 1000
        assert same.has(digest)
        assert list(same.get_record("kind", KEY).items()) == [("b", [1, None]), ("a", "é")]
    store.put_record("kind", KEY, 2)
    assert store.get_record("kind", KEY) == 2
    with store.scratch() as first, store.scratch() as second:
        assert first != second and len(str(first)) == len(str(second))
    assert not first.exists()


def test_keys_tell_different_values_apart():
    parts = [("a", 1), ("a", 2), ("a", "1"), ("a1",), (["a", 1],), ("a", [1])]
    assert len({key_of(*row) for row in parts}) == 6


@pytest.mark.parametrize("damage", [b"", b"garbage", None])
def test_damaged_blob_counts_as_absent(tmp_path, damage):
    store = Store(tmp_path)
    digest, other = store.put(b"one"), store.put(b"two")
    path = store.object_path(digest)
    # None: whole and valid, but another artifact's content
    path.write_bytes(store.object_path(other).read_bytes() if damage is None else damage)
    assert store.has(digest) is (damage != b""), "an empty one is none; another is found out as it is read"
    assert store.get(digest) is None
    assert not path.exists()
    assert store.put(b"one") == digest
    assert store.get(digest) == b"one"


@pytest.mark.parametrize(
    "damage",
    ["value = x'32'", "value = NULL, used = NULL", "digest = x'00'", "kind = 'other'", f"key = '{OTHER}'"],
)
def test_damaged_record_counts_as_absent(tmp_path, damage):
    store = Store(tmp_path)
    store.put_record("kind", KEY, 1)
    in_file(store, f"UPDATE records SET {damage}")
    store.prune(10_000_000)
    for kind, key in (("kind", KEY), ("other", KEY), ("kind", OTHER)):
        assert store.get_record(kind, key) is None
    store.put_record("kind", KEY, 3)
    assert Store(tmp_path).get_record("kind", KEY) == 3


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"no database" * 1000,
        lambda content: content[: len(content) // 2],
        lambda content: content[:100] + b"\xff" * (len(content) - 100),
        lambda content: content[:4096] + b"\xff" * (len(content) - 4096),
        lambda content: content.replace(b"value", b"other"),
    ],
)
def test_a_damaged_file_of_records_counts_as_absent_and_is_left_to_itself(tmp_path, damage):
    before = Store(tmp_path)
    digest = before.put(b"one")
    for number in range(50):
        before.put_record("kind", key_of(number), "x" * 1000)
    path = tmp_path / "records-1.sqlite3"
    path.write_bytes(damaged := damage(path.read_bytes()))
    store = Store(tmp_path)
    assert [store.get_record("kind", key_of(number)) for number in range(50)] == [None] * 50
    store.put_record("kind", KEY, 1)
    for same in (store, Store(tmp_path)):
        assert (same.get_record("kind", KEY), same.get(digest)) == (1, b"one")
    assert any("records-1.sqlite3 is damaged" in note for note in store.notes())
    assert (tmp_path / "records-2.sqlite3").is_file()
    assert path.read_bytes() == damaged
    store.prune(None, max_age_s=DAY_S)
    assert not path.exists()
    assert store.get_record("kind", KEY) == 1


def test_all_damage_is_found_at_once(tmp_path):
    store = Store(tmp_path)
    one, two = store.put(b"one"), store.put(b"two")
    for key in (KEY, OTHER):
        store.put_record("kind", key, 1)
    assert store.remove_damaged() == []
    store.object_path(one).write_bytes(store.object_path(one).read_bytes()[:-2])
    in_file(store, "UPDATE records SET value = x'32' WHERE key = ?", KEY)
    assert store.remove_damaged() == [f"blobs/{one[:2]}/{one[2:]}", f"kind {KEY}"]
    assert store.remove_damaged() == []
    assert (store.get(two), store.get_record("kind", OTHER)) == (b"two", 1)
    path = tmp_path / "records-1.sqlite3"
    path.write_bytes(path.read_bytes()[:5000])
    assert Store(tmp_path).remove_damaged() == ["records-1.sqlite3"]


def test_nothing_is_kept_once_irdiff_itself_is_replaced(tmp_path, monkeypatch):
    """As by an update: the code in memory is older than the code that keys name."""
    module = tmp_path / "verdicts.py"
    module.write_text("old")
    monkeypatch.setattr(code, "_AT_START", code._stamps([module]))
    store = Store(tmp_path / "store")
    store.put_record("compared", "a", 1)
    module.write_text("new code")
    store.put_record("compared", "b", 2)
    assert [store.get_record("compared", key) for key in "ab"] == [1, None]
    assert "irdiff's own files changed" in "".join(store.notes())


def test_processes_and_threads_lose_nothing(tmp_path):
    children = processes(tmp_path, text_of("store/many.py"), 3)
    assert [child.wait() for child in children] == [0, 0, 0]
    store = Store(tmp_path)
    assert store.usage().records == 3 * 3 * 50 + 50
    for name in (f"{child}-{thread}-{n}" for child in range(3) for thread in range(3) for n in range(50)):
        assert store.get(store.get_record("own", name)) == name.rpartition("-")[2].encode()


def test_a_writer_that_is_killed_leaves_a_good_store(tmp_path):
    (child,) = processes(tmp_path, text_of("store/killed.py"))
    assert child.stdout and "50\n" in child.stdout
    child.send_signal(signal.SIGKILL)
    written = max(map(int, child.communicate()[0].split()), default=50)
    store = Store(tmp_path)
    assert all(store.get_record("kind", str(n)) == "x" * 20000 for n in range(written))
    assert store.remove_damaged() == []
    store.put_record("kind", KEY, 1)
    assert list(store.notes()) == []


def test_a_scratch_folder_is_removed_when_its_owner_has_ended_and_not_before(tmp_path):
    """Processes of containers may have the same ids."""
    (child,) = processes(
        tmp_path, "with store.scratch() as folder: print(folder, flush=True); signal.pause()"
    )
    assert child.stdout
    folder = Path(child.stdout.readline().strip())
    store = Store(tmp_path)
    with store.scratch() as own:
        store.prune(None)
        assert folder.is_dir() and own.is_dir()
        child.send_signal(signal.SIGKILL)
        child.communicate()
        store.prune(None)
        assert not folder.exists() and own.is_dir()
    assert list(folder.parent.iterdir()) == []


def test_what_cannot_be_written_is_one_clear_error(tmp_path):
    (tmp_path / "blobs").write_text("a file where a folder should be")
    with pytest.raises(StoreError, match="cannot be written") as raised:
        Store(tmp_path).put(b"x")
    assert "irdiff store prune" in raised.value.hint
    with pytest.raises(StoreError, match="cannot be written"):
        Store(tmp_path / "blobs").put_record("kind", KEY, 1)
    assert Store(tmp_path / "blobs").get_record("kind", KEY) is None


def test_a_full_disk_is_one_clear_error_and_loses_nothing(tmp_path):
    """A limit of the size of files stands for it: every write past it fails."""
    Store(tmp_path).put_record("kind", KEY, 1)
    (child,) = processes(tmp_path, text_of("store/full_disk.py"))
    written = int(child.communicate()[0])
    assert written < 99 and child.returncode == 0
    store = Store(tmp_path)
    assert all(store.get_record("kind", str(n)) for n in range(written))
    assert store.get_record("kind", KEY) == 1
    assert store.remove_damaged() == []
    store.put_record("kind", "more", "x" * 100_000)
    assert list(store.notes()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_folder_that_can_only_be_read_is_read():
    """Not below pytest's folder, which each pytest that starts closes to other users."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        store = Store(Path(folder))
        store.put(b"one")
        store.put_record("kind", KEY, 1)
        (child,) = processes(Path(folder), text_of("store/read_only.py"))
        assert "cannot be written" in child.communicate()[0]
        assert child.returncode == 0


def test_prune_keeps_within_bound(tmp_path):
    store = Store(tmp_path)
    for number in range(50):
        store.put(os.urandom(5000))
        store.put_record("kind", key_of(number), "x" * 5000)
    before = store.usage()
    freed = store.prune(before.size_bytes // 2)
    left = store.usage()
    assert 0 < left.size_bytes <= before.size_bytes // 2
    assert min(left.objects, left.records) > 10
    assert freed == before.size_bytes - left.size_bytes


def test_what_is_used_stays_longest(tmp_path):
    store = Store(tmp_path)
    old = time.time() - 10 * DAY_S
    digests = [store.put(text) for text in (b"used", b"asked for", b"unused")]
    for digest in digests:
        os.utime(store.object_path(digest), (old, old))
    for key in ("used", "unused"):
        store.put_record("kind", key, key)
    in_file(store, "UPDATE records SET used = ?", old)
    made = [tmp_path / "assembled" / "ab" / (letter * 62) for letter in "cd"]
    for path, used in zip(made, (time.time(), old), strict=True):
        assembling.write(str(path), b"binary", "log")
        os.utime(path, (used, old))
    assert store.get(digests[0]) == b"used"
    assert store.has(digests[1])
    assert store.get_record("kind", "used") == "used"
    del store  # what it used is marked when it goes
    again = Store(tmp_path)
    again.prune(None, max_age_s=5 * DAY_S)
    assert [again.has(digest) for digest in digests] == [True, True, False]
    assert [path.exists() for path in made] == [True, False]
    assert [again.get_record("kind", key) for key in ("used", "unused")] == ["used", None]


FOREIGN = (
    *("blobs/readme.txt", "blobs/ab/notes", "blobs/pack/pack-1.idx", "records/2024/invoice.pdf"),
    *("records-1.txt", "tmp/2024-report/text.txt", "tmp/20240101-20240201/text.txt", "tmp/notes.txt"),
)


def test_prune_removes_nothing_that_the_store_did_not_make(tmp_path):
    root, outside = tmp_path / "store", tmp_path / "outside"
    for path in (outside / "file", *(root / name for name in FOREIGN)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"mine")
    (root / "tmp" / "link.lock").symlink_to(outside / "file")
    (root / "tmp" / f"{'2' * 32}.lock").symlink_to(outside / "file")
    (root / "tmp" / ("2" * 32)).symlink_to(outside)
    (root / "blobs" / "ef").mkdir()
    (root / "blobs" / "ef" / ("1" * 62)).symlink_to(outside / "file")
    (root / "tmp" / ("3" * 32)).mkdir()
    (root / "tmp" / f"{'3' * 32}.lock").touch()
    store = Store(root)
    digest = store.put(b"one")
    store.put_record("kind", KEY, {"value": 1})
    store.prune(0)
    assert not store.has(digest)
    assert store.get_record("kind", KEY) is None
    assert not (root / "tmp" / ("3" * 32)).exists(), "of a process that is gone"
    assert {(root / name).read_bytes() for name in FOREIGN} == {b"mine"}
    assert (outside / "file").read_bytes() == b"mine"


MISTAKES = {"2": "--max-size 2GB?", "500": "--max-size 500MB?", "0": "--max-size 0GB?"}


@pytest.mark.parametrize("text", ["many", "", "-2GB", "2GBs", "2 2GB", "B", *MISTAKES])
def test_a_bad_size_empties_nothing(tmp_path, text):
    digest = Store(tmp_path / "results").put(b"one")
    with pytest.raises(UsageError) as raised:
        typed(store_group, "prune", f"--max-size={text}", "--cache", tmp_path)
    assert MISTAKES.get(text, "is not a size") in raised.value.what + raised.value.hint
    assert Store(tmp_path / "results").has(digest)
