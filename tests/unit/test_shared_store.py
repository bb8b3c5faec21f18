"""Two machines and a folder between them: what the second one takes, what it refuses, and that it goes on."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from irdiff import config as configuration
from irdiff.cli.store_commands import store_group
from irdiff.config import SharedStoreConfig, StoreMode
from irdiff.errors import UsageError
from irdiff.store import Store, key_of, sha256, shared
from irdiff.store.shared import PlaceError, SharedStore
from tests.unit.typed import typed

BASE, HEAD, OTHER = "a" * 64, "b" * 64, "c" * 64
PLACE = ("matmul/tma", "sm_90")
KEY = key_of("compile", 1)
TEXT = sha256(b"text")


@dataclass
class Machines:
    folder: Path

    def store(self, name):
        return Store(self.folder / name)

    def shared(self, name, *, write=False):
        mode = StoreMode.WRITE if write else StoreMode.READ
        return SharedStore(self.store(name), SharedStoreConfig(url=str(self.folder / "shared"), mode=mode))

    def run(self, name, *texts, write=True, sides=(BASE, HEAD), places=(PLACE,)):
        """A run that compiles these texts, the first one under KEY."""
        session = self.shared(name, write=write)
        session.pull(sides, places, print)
        digests = [session._store.put(text.encode()) for text in texts]
        session._store.put_record("compile", KEY, {"artifact": digests[0]})
        session.push(print)
        return session

    def reads(self, name, *sides, places=(PLACE,)):
        session = self.shared(name)
        session.pull(sides or (BASE,), places, print)
        return session

    def forge(self, content):
        """Leaves a bundle of this content, as somebody who may write."""
        digest = sha256(content)
        for name, text in ((f"bundles/{digest}", content), (f"of/{BASE}/matmul/tma@sm_90/{digest}", b"")):
            (self.folder / "shared" / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / "shared" / name).write_bytes(text)

    def files(self):
        root = self.folder / "shared"
        return {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}


@pytest.fixture
def machines(tmp_path):
    return Machines(tmp_path)


def test_the_second_machine_has_what_the_first_one_made(machines):
    machines.run("one", "text")
    second = machines.reads("two", HEAD)
    assert (second.trouble, second.traffic.refused) == ("", [])
    store = machines.store("two")
    assert store.get_record("compile", KEY) == {"artifact": TEXT}
    assert store.get(TEXT) == b"text"
    assert (second.traffic.bundles, second.traffic.files) == (1, 2)
    assert "1 bundles taken, 2 files" in next(iter(second.notes()))


def test_only_what_is_asked_for_is_fetched(machines):
    machines.run("one", "text")
    several = [("matmul/tma", "sm_100"), ("matmul", "sm_90"), ("other", "gfx942")]
    assert machines.reads("two", OTHER).traffic.bundles == 0
    assert machines.reads("two", places=several).traffic.bundles == 0
    assert machines.reads("two", places=[*several, PLACE]).traffic.bundles == 1
    machines.run("one", "more", places=[("a b", "sm_90"), ("c", "sm_90")])
    assert machines.reads("two", places=[("a b", "gfx942")]).traffic.bundles == 0
    assert machines.reads("two", places=[("a b", "sm_90")]).traffic.bundles == 1


def test_nothing_is_fetched_or_sent_twice(machines):
    machines.run("one", "text")
    before = machines.files()
    for name in ("one", "two", "two"):
        assert machines.run(name, "text").traffic.sent_bundles == 0
    assert machines.files() == before
    assert machines.reads("one").traffic.bundles == 0
    machines.store("one").prune(0)
    assert machines.reads("one").traffic.bundles == 1
    assert machines.store("one").get(TEXT) == b"text"
    assert machines.run("two", "text", "more").traffic.sent_bundles == 1
    assert machines.reads("three", places=None).traffic.bundles == 2
    assert machines.store("three").get(sha256(b"more")) == b"more"


def test_what_readers_made_is_sent_when_they_may_write(machines):
    machines.run("one", "text", write=False)
    assert machines.files() == set()
    later = machines.shared("one", write=True)
    for _ in range(2):
        later.push_kept(print)
    assert later.traffic.sent_bundles == 1
    machines.reads("two", HEAD)
    assert machines.store("two").get_record("compile", KEY) == {"artifact": TEXT}


@pytest.mark.parametrize("damage", [lambda c: c[:-3], lambda c: c + b"x", lambda _: b"garbage" * 9])
def test_a_bundle_that_is_not_of_its_digest_is_refused(machines, damage):
    machines.run("one", "text")
    (path,) = (machines.folder / "shared" / "bundles").iterdir()
    path.write_bytes(damage(path.read_bytes()))
    second = machines.reads("two")
    assert machines.store("two").get_record("compile", KEY) is None
    assert "match its digest" in second.traffic.refused[0]
    assert any("1 refused" in note for note in second.notes())


NAMES = ("../../etc/passwd", "/etc/passwd", "a/short", "0" * 62)
CONTENTS = [b"", b"garbage", b"irdiff-bundle/1 5\nwrong", b"irdiff-bundle/1 x\n"]


@pytest.mark.parametrize("content", [*CONTENTS, *(shared._bundle({}, {name: b"x"}) for name in NAMES)])
def test_what_is_no_bundle_is_refused(machines, content):
    machines.forge(content)
    assert len(machines.reads("two").traffic.refused) == 1
    assert machines.store("two").usage().objects == 0


def test_a_bundle_replaces_nothing_and_blobs_are_of_their_digests(machines):
    donor, mine = machines.store("donor"), machines.store("two")
    one, other = donor.put(b"one"), donor.put(b"other")
    packed = donor.packed(one) or b""
    mine.put_record("compile", KEY, {"artifact": "mine"})
    records = {("compile", KEY): "2", ("compile", "x"): "no JSON"}
    machines.forge(shared._bundle(records, {one: packed, other: packed, "0" * 64: packed[:-2]}))
    machines.reads("two")
    assert (mine.get(one), mine.usage().objects) == (b"one", 1)
    assert mine.get_record("compile", KEY) == {"artifact": "mine"}
    assert mine.get_record("compile", "x") is None


@pytest.mark.parametrize("answers", [0, 1, 2])
def test_a_server_that_goes_away_ends_its_use_and_not_the_run(machines, answers, monkeypatch):
    machines.run("one", "text")
    session = machines.shared("two", write=True)
    left, asked = iter(range(answers)), session._call

    def ask(question):
        if next(left, None) is None:
            raise PlaceError("the shared store s3://gone does not answer: timed out")
        return asked(question)

    monkeypatch.setattr(session, "_call", ask)
    session.pull([BASE, HEAD], [PLACE], print)
    digest = session._store.put(b"made here")
    session.push(print)
    assert "timed out" in session.trouble
    assert any("was made here" in note for note in session.notes())
    assert machines.store("two").get(digest) == b"made here"
    machines.shared("two", write=True).push_kept(print)
    machines.reads("three", HEAD)
    assert machines.store("three").get(digest) == b"made here"


def test_where_a_shared_store_is(monkeypatch, tmp_path):
    monkeypatch.delenv("IRDIFF_STORE", raising=False)
    for url in ("ftp://host/path", "nonsense://x"):
        with pytest.raises(UsageError, match="is no shared store"):
            SharedStore(Store(tmp_path), SharedStoreConfig(url=url, mode=StoreMode.READ))
    with pytest.raises(UsageError, match="no shared store is named"):
        typed(store_group, "push")
    monkeypatch.setenv("IRDIFF_STORE", "s3://b/p")
    read, write = configuration.load().shared_store, configuration.load(store_mode="write").shared_store
    assert (read, write) == tuple(
        SharedStoreConfig(url="s3://b/p", mode=StoreMode(m)) for m in ("read", "write")
    )
