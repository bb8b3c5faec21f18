from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from irdiff.cli.store_commands import parse_size, store_group
from irdiff.errors import StoreError, UsageError
from irdiff.store import Store, key_of
from irdiff.worker import assembling

KEY = key_of("a")
DAY_S = 86400


def in_file(store: Store, statement: str, *values: object) -> None:
    """Something else writes into the file of records."""
    with sqlite3.connect(store.root / "records-1.sqlite3") as connection:
        connection.execute(statement, values)
    connection.close()


def processes(folder: Path, script: str, count: int = 1) -> list[subprocess.Popen[str]]:
    """Processes that use the store of a folder."""
    head = f"import sys; from pathlib import Path; from irdiff.store import Store; store = Store(Path({str(folder)!r}))\n"
    return [
        subprocess.Popen([sys.executable, "-c", head + script, str(n)], stdout=subprocess.PIPE, text=True)
        for n in range(count)
    ]


def test_round_trip(tmp_path: Path) -> None:
    store = Store(tmp_path)
    digest = store.put(b"text" * 1000)
    store.put_record("kind", KEY, {"b": [1, None], "a": "é"})
    for same in (store, Store(tmp_path)):
        assert same.get(digest) == b"text" * 1000
        assert same.has(digest)
        assert list(same.get_record("kind", KEY).items()) == [("b", [1, None]), ("a", "é")]
    store.put_record("kind", KEY, 2)
    assert store.get_record("kind", KEY) == 2


def test_what_is_absent_makes_no_file(tmp_path: Path) -> None:
    store = Store(tmp_path / "new")
    assert store.get("0" * 64) is None
    assert store.get_record("kind", KEY) is None
    assert not store.has("0" * 64)
    assert store.usage().size_bytes == 0
    assert store.remove_damaged() == []
    assert not store.root.exists()


@pytest.mark.parametrize("damage", [b"", b"garbage", None])
def test_damaged_blob_counts_as_absent(tmp_path: Path, damage: bytes | None) -> None:
    store = Store(tmp_path)
    digest, other = store.put(b"one"), store.put(b"two")
    path = store.object_path(digest)
    # None: whole and valid, but another artifact's content
    path.write_bytes(store.object_path(other).read_bytes() if damage is None else damage)
    assert store.get(digest) is None
    assert not path.exists()
    assert store.put(b"one") == digest
    assert store.get(digest) == b"one"


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE records SET value = CAST('2' AS BLOB)",
        "UPDATE records SET value = NULL, used = NULL",
        "UPDATE records SET digest = x'00'",
        "UPDATE records SET kind = 'other'",
        f"UPDATE records SET key = '{key_of('b')}'",
    ],
)
def test_damaged_record_counts_as_absent(tmp_path: Path, damage: str) -> None:
    store = Store(tmp_path)
    store.put_record("kind", KEY, 1)
    in_file(store, damage)
    store.prune(10_000_000)
    for kind, key in (("kind", KEY), ("other", KEY), ("kind", key_of("b"))):
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
    ],
)
def test_a_damaged_file_of_records_counts_as_absent_and_is_left_to_itself(
    tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    before = Store(tmp_path)
    digest = before.put(b"one")
    for number in range(50):
        before.put_record("kind", key_of(number), "x" * 1000)
    path = tmp_path / "records-1.sqlite3"
    path.write_bytes(damage(path.read_bytes()))
    damaged = path.read_bytes()
    store = Store(tmp_path)
    assert [store.get_record("kind", key_of(number)) for number in range(50)] == [None] * 50
    store.put_record("kind", KEY, 1)
    for same in (store, Store(tmp_path)):
        assert same.get_record("kind", KEY) == 1
        assert same.get(digest) == b"one"
    assert any("records-1.sqlite3 is damaged" in note for note in store.notes())
    assert path.read_bytes() == damaged
    store.prune(None, max_age_s=DAY_S)
    assert not path.exists()
    assert store.get_record("kind", KEY) == 1


def test_a_file_of_records_with_another_table_is_not_used(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "records-1.sqlite3") as connection:
        connection.execute("CREATE TABLE records (other TEXT)")
    connection.close()
    store = Store(tmp_path)
    assert store.get_record("kind", KEY) is None
    store.put_record("kind", KEY, 1)
    assert store.get_record("kind", KEY) == 1


def test_all_damage_is_found_at_once(tmp_path: Path) -> None:
    store = Store(tmp_path)
    one, two = store.put(b"one"), store.put(b"two")
    store.put_record("kind", KEY, 1)
    store.put_record("kind", key_of("b"), 1)
    assert store.remove_damaged() == []
    store.object_path(one).write_bytes(store.object_path(one).read_bytes()[:-2])
    in_file(store, "UPDATE records SET value = x'32' WHERE key = ?", KEY)
    assert store.remove_damaged() == [f"blobs/{one[:2]}/{one[2:]}", f"kind {KEY}"]
    assert store.remove_damaged() == []
    assert store.get(two) == b"two"
    assert store.get_record("kind", key_of("b")) == 1
    path = tmp_path / "records-1.sqlite3"
    path.write_bytes(path.read_bytes()[:5000])
    assert Store(tmp_path).remove_damaged() == ["records-1.sqlite3"]


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


# several at once


def test_processes_and_threads_lose_nothing(tmp_path: Path) -> None:
    script = """
from threading import Thread
def work(thread):
    for n in range(50):
        store.put_record("own", f"{sys.argv[1]}-{thread}-{n}", store.put(f"{n}".encode()))
        store.put_record("shared", str(n), n)
        assert store.get_record("shared", str(n)) == n
threads = [Thread(target=work, args=(thread,)) for thread in range(3)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(store.usage().records)
"""
    children = processes(tmp_path, script, 3)
    assert [child.wait(60) for child in children] == [0, 0, 0]
    store = Store(tmp_path)
    assert max(int(child.communicate()[0]) for child in children) == store.usage().records == 3 * 3 * 50 + 50
    for name in (f"{child}-{thread}-{n}" for child in range(3) for thread in range(3) for n in range(50)):
        digest = store.get_record("own", name)
        assert store.get(digest) == name.rpartition("-")[2].encode()


def test_a_writer_that_is_killed_leaves_a_good_store(tmp_path: Path) -> None:
    script = """
n = 0
while True:
    store.put_record("kind", str(n), "x" * 20000)
    n += 1
    print(n, flush=True)
"""
    (child,) = processes(tmp_path, script)
    assert child.stdout
    for line in child.stdout:
        if int(line) == 50:
            break
    child.send_signal(signal.SIGKILL)
    written = max(map(int, child.communicate()[0].split()), default=50)
    store = Store(tmp_path)
    assert all(store.get_record("kind", str(n)) == "x" * 20000 for n in range(written))
    assert store.remove_damaged() == []
    store.put_record("kind", KEY, 1)
    assert list(store.notes()) == []


def test_a_transaction_of_a_killed_process_is_undone(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.put_record("kind", KEY, 1)
    script = """
import sqlite3
connection = sqlite3.connect(store.root / "records-1.sqlite3", isolation_level=None)
connection.execute("PRAGMA cache_size = 1")
connection.execute("BEGIN")
connection.executemany("INSERT INTO records VALUES ('k', ?, ?, x'00', 0)", [(n, b"x" * 9000) for n in range(500)])
connection.execute("UPDATE records SET value = x'00'")
print("written", flush=True)
import time; time.sleep(60)
"""
    (child,) = processes(tmp_path, script)
    assert child.stdout
    child.stdout.readline()
    child.kill()
    child.wait()
    child.stdout.close()
    assert (tmp_path / "records-1.sqlite3-journal").stat().st_size > 0
    assert store.get_record("kind", KEY) == 1
    assert store.usage().records == 1


def test_a_reader_waits_for_a_writer(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.put_record("kind", KEY, 1)
    other = sqlite3.connect(tmp_path / "records-1.sqlite3", isolation_level=None, check_same_thread=False)
    other.execute("BEGIN EXCLUSIVE")
    waiting = threading.Timer(0.3, lambda: other.execute("COMMIT"))
    waiting.start()
    assert store.get_record("kind", KEY) == 1
    waiting.join()
    other.close()


# a folder that cannot be written


def test_what_cannot_be_written_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "blobs").write_text("a file where a folder should be")
    with pytest.raises(StoreError, match="cannot be written") as raised:
        Store(tmp_path).put(b"x")
    assert "irdiff store prune" in raised.value.hint
    with pytest.raises(StoreError, match="cannot be written"):
        Store(tmp_path / "blobs").put_record("kind", KEY, 1)
    assert Store(tmp_path / "blobs").get_record("kind", KEY) is None


def test_a_full_disk_is_one_clear_error_and_loses_nothing(tmp_path: Path) -> None:
    """A limit of the size of files stands for it: every write past it fails."""
    Store(tmp_path).put_record("kind", KEY, 1)
    script = """
import resource
from irdiff.errors import StoreError
resource.setrlimit(resource.RLIMIT_FSIZE, (40000, 40000))
for n in range(100):
    try:
        store.put_record("kind", str(n), "x" * 3000)
    except StoreError as error:
        assert "cannot be written" in str(error)
        break
else:
    sys.exit("nothing failed")
for m in range(n):
    assert store.get_record("kind", str(m)) == "x" * 3000
print(n)
"""
    (child,) = processes(tmp_path, script)
    written = int(child.communicate()[0])
    assert child.returncode == 0
    store = Store(tmp_path)
    assert all(store.get_record("kind", str(n)) for n in range(written))
    assert store.get_record("kind", KEY) == 1
    assert store.remove_damaged() == []
    store.put_record("kind", "more", "x" * 100_000)
    assert list(store.notes()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_folder_that_can_only_be_read_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    store = Store(folder)
    digest = store.put(b"one")
    store.put_record("kind", KEY, 1)
    script = f"""
import os
from irdiff.errors import StoreError
os.setuid(65534)
assert store.get_record("kind", {KEY!r}) == 1
assert store.get({digest!r}) == b"one"
assert store.put(b"one") == {digest!r}
assert list(store.notes()) == []
try:
    store.put_record("kind", "more", 1)
except StoreError as error:
    print(error.what)
"""
    for parent in [folder, *folder.parents][:5]:
        parent.chmod(0o755)
    (child,) = processes(folder, script)
    assert "cannot be written" in child.communicate()[0]
    assert child.returncode == 0


# housekeeping


def test_prune_keeps_within_bound(tmp_path: Path) -> None:
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


def test_what_is_used_stays_longest(tmp_path: Path) -> None:
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
    "blobs/readme.txt": b"mine",
    "blobs/ab/notes": b"mine",
    "blobs/pack/pack-1.idx": b"of git",
    "records/2024/invoice.pdf": b"mine",
    "records-1.txt": b"mine",
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
    (tmp_path / "blobs" / "ef").mkdir()
    (tmp_path / "blobs" / "ef" / ("1" * 62)).symlink_to(outside / "file")
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
