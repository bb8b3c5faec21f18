"""Two machines and a folder between them: what the second one takes, what it refuses, and that it goes on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from irdiff.config import SharedStoreConfig, StoreMode
from irdiff.shared_store import pruning, signatures
from irdiff.shared_store import session as shared_store_session
from irdiff.shared_store.place import Place, PlaceError
from irdiff.shared_store.session import SharedStoreSession, part_of
from irdiff.store import Store, key_of, sha256
from irdiff.store.packs import packed

BASE, HEAD = "a" * 64, "b" * 64
PART = part_of("matmul/tma", "sm_90")
KEY = key_of("compile", 1)


@dataclass
class Machines:
    folder: Path
    keys: tuple[str, str] = field(default_factory=signatures.new_keys)

    @property
    def place(self) -> Place:
        return Place(str(self.folder / "shared"))

    def store(self, name: str) -> Store:
        return Store(self.folder / name)

    def session(
        self,
        name: str,
        *,
        write: bool = False,
        signs: bool = False,
        verifies: bool = False,
        place: Any = None,
    ) -> SharedStoreSession:
        config = SharedStoreConfig(
            url="",
            mode=StoreMode.WRITE if write else StoreMode.READ,
            signing_key=self.keys[0] if signs else None,
            public_key=self.keys[1] if verifies else None,
        )
        return SharedStoreSession(self.store(name), place or self.place, config)

    def works(self, session: SharedStoreSession, name: str, text: str = "text", part: str = PART) -> str:
        """A case that compiles, and what it leaves in the store of its machine."""
        store = session._store
        with session.noting(part):
            digest = store.put(text.encode())
            store.put_record("compile", KEY, {"artifact": digest})
        session.push(session.noted((BASE, HEAD)), quiet)
        return digest

    def forge(
        self, files: Mapping[str, bytes], *, digest: str | None = None, signature: str = "unsigned"
    ) -> None:
        pack = packed(files.items())
        digest = digest or sha256(pack)
        self.place.put(f"packs/{digest}", pack)
        self.place.put(f"scopes/{BASE}/{PART}/{digest}-{signature}", b"")
        self.place.leave_list(BASE)

    def files(self) -> set[str]:
        root = self.folder / "shared"
        return {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}


def quiet(_: object) -> None:
    """No progress."""


@pytest.fixture
def machines(tmp_path: Path) -> Machines:
    return Machines(tmp_path)


def test_the_second_machine_has_what_the_first_one_made(machines: Machines) -> None:
    digest = machines.works(machines.session("one", write=True), "one")
    second = machines.session("two")
    second.pull([HEAD], [PART], quiet)
    assert second.traffic.refused == []
    assert machines.store("two").get_record("compile", KEY) == {"artifact": digest}
    assert machines.store("two").get(digest) == b"text"
    assert (second.traffic.packs, second.traffic.files) == (1, 2)
    assert "1 packs taken, 2 files" in next(iter(second.notes()))


def test_only_what_is_asked_for_is_fetched(machines: Machines) -> None:
    machines.works(machines.session("one", write=True), "one")
    second = machines.session("two")
    second.pull(["c" * 64], [PART], quiet)
    second.pull([BASE], [part_of("matmul/tma", "sm_100")], quiet)
    assert second.traffic.packs == 0


def test_what_is_here_is_not_fetched_twice_and_what_is_there_is_not_sent_twice(machines: Machines) -> None:
    machines.works(machines.session("one", write=True), "one")
    before = machines.files()
    again = machines.session("one", write=True)
    again.pull([BASE, HEAD], [PART], quiet)
    machines.works(again, "one")
    assert machines.files() == before
    third = machines.session("one")
    third.pull([BASE], [PART], quiet)
    assert third.traffic.packs == 0
    machines.store("one").object_path(sha256(b"text")).unlink()
    assert machines.store("one").get(sha256(b"text")) == b"text"
    (pack,) = (machines.folder / "one" / "packs").glob("*/*")
    pack.unlink()
    assert machines.store("one").get(sha256(b"text")) is None
    third.pull([BASE], [PART], quiet)
    assert third.traffic.packs == 1
    assert machines.store("one").get(sha256(b"text")) == b"text"


def test_what_is_new_is_one_more_pack(machines: Machines) -> None:
    machines.works(machines.session("one", write=True), "one")
    again = machines.session("two", write=True)
    again.pull([BASE, HEAD], [PART], quiet)
    other = machines.works(again, "two", "more")
    assert again.traffic.sent_packs == 1
    third = machines.session("three")
    third.pull([BASE], None, quiet)
    assert third.traffic.packs == 2
    assert machines.store("three").get(other) == b"more"


def test_a_reader_asks_for_the_list_and_a_writer_for_the_names(machines: Machines) -> None:
    """What a writer that died left out of the list is not fetched, and not sent again."""
    machines.works(machines.session("one", write=True), "one")
    for toolchain in (BASE, HEAD):
        machines.place.put(f"scopes/{toolchain}.txt", b"")
    reader = machines.session("two")
    reader.pull([BASE, HEAD], [PART], quiet)
    assert reader.traffic.packs == 0
    writer = machines.session("three", write=True)
    writer.pull([BASE, HEAD], [PART], quiet)
    machines.works(writer, "three")
    assert (writer.traffic.packs, writer.traffic.sent_packs) == (1, 0)
    reader.pull([BASE, HEAD], [PART], quiet)
    assert reader.traffic.packs == 1


def test_a_push_without_a_run_sends_what_is_not_there(machines: Machines) -> None:
    reader = machines.session("one")
    machines.works(reader, "one")
    assert machines.files() == set()
    row = {PART: {BASE: set(next(machines.store("one").records("scope"))["names"])}}
    writer = machines.session("one", write=True)
    writer.look([BASE], quiet)
    writer.push(row, quiet)
    once = machines.files()
    again = machines.session("one", write=True)
    again.look([BASE], quiet)
    again.push(row, quiet)
    assert machines.files() == once
    assert again.traffic.sent_packs == 0


# poisoning


def test_who_may_only_read_writes_nothing(machines: Machines) -> None:
    machines.works(machines.session("one"), "one")
    assert machines.files() == set()


def test_a_record_that_names_other_artifacts_is_not_taken_from_who_cannot_sign(machines: Machines) -> None:
    """It is sound in itself: only who wrote it tells it from a right one."""
    honest = machines.works(machines.session("one", write=True, signs=True), "one")
    elsewhere = machines.store("attacker")
    other = elsewhere.put(b"of another kernel")
    elsewhere.put_record("compile", KEY, {"artifact": other})
    names = [f"objects/{other[:2]}/{other[2:]}", f"records/compile/{KEY[:2]}/{KEY[2:]}"]
    files = {name: elsewhere.file(name) or b"" for name in names}
    machines.forge(files)
    machines.forge(files, signature="00" * 64)
    machines.forge(files, signature=signatures.Signer(signatures.new_keys()[0]).sign(f"{BASE}/{PART}", "x"))
    second = machines.session("two", verifies=True)
    second.pull([BASE], [PART], quiet)
    assert machines.store("two").get_record("compile", KEY) == {"artifact": honest}
    assert machines.store("two").get(other) is None
    assert len(second.traffic.refused) == 3
    assert any("3 refused" in note for note in second.notes())


def test_a_signature_holds_for_one_place_alone(machines: Machines) -> None:
    machines.works(machines.session("one", write=True, signs=True), "one")
    (name,) = (entry for entry in machines.place.packs_of(BASE))
    machines.place.put(f"scopes/{'c' * 64}/{name}", b"")
    second = machines.session("two", verifies=True)
    second.pull(["c" * 64], None, quiet)
    assert (second.traffic.packs, len(second.traffic.refused)) == (0, 1)


def test_a_record_that_is_here_is_not_replaced(machines: Machines) -> None:
    mine = machines.store("two")
    mine.put_record("compile", KEY, {"artifact": "mine"})
    machines.works(machines.session("one", write=True), "one")
    machines.session("two").pull([BASE], [PART], quiet)
    assert mine.get_record("compile", KEY) == {"artifact": "mine"}


@pytest.mark.parametrize(
    "damage", [lambda c: c[:-3], lambda c: c + b"x", lambda c: b"", lambda c: b"garbage" * 9]
)
def test_a_pack_that_is_not_of_its_digest_is_refused(machines: Machines, damage: Any) -> None:
    machines.works(machines.session("one", write=True), "one")
    (path,) = (machines.folder / "shared" / "packs").iterdir()
    path.write_bytes(damage(path.read_bytes()))
    second = machines.session("two")
    second.pull([BASE], [PART], quiet)
    assert list(machines.store("two").records("compile")) == []
    assert "not of its digest" in second.traffic.refused[0]
    assert pruning.damaged(machines.place) == [f"packs/{path.name}"]


@pytest.mark.parametrize(
    "name",
    ["objects/../../etc/passwd", "/etc/passwd", "objects/aa/short", "tmp/x", "records/../aa/" + "0" * 62],
)
def test_a_pack_names_no_other_file(machines: Machines, name: str) -> None:
    machines.forge({name: b"x"})
    second = machines.session("two")
    second.pull([BASE], [PART], quiet)
    assert "names files that no store has" in second.traffic.refused[0]
    assert not (machines.folder / "two").exists()


def test_an_object_of_another_digest_and_a_truncated_one_count_as_absent(machines: Machines) -> None:
    donor = machines.store("attacker")
    one, other = donor.put(b"one"), donor.put(b"other")
    donor.put_record("compile", KEY, {"artifact": one})
    record = f"records/compile/{KEY[:2]}/{KEY[2:]}"
    honest = f"objects/{one[:2]}/{one[2:]}", donor.file(f"objects/{one[:2]}/{one[2:]}") or b""
    swapped = f"objects/{other[:2]}/{other[2:]}", honest[1]
    truncated = "objects/00/" + "0" * 62, honest[1][:-2]
    edited = record, (donor.file(record) or b"").replace(b"artifact", b"artefact")
    machines.forge(dict([honest, swapped, truncated, edited]))
    machines.session("two").pull([BASE], [PART], quiet)
    store = machines.store("two")
    assert store.get(one) == b"one"
    assert store.get(other) is None
    assert not store.has(other)
    assert store.get("0" * 64) is None
    assert store.get_record("compile", KEY) is None
    assert store.put(b"other") == other
    assert machines.store("two").get(other) == b"other", "a file of its own is asked first"


def test_packs_stay_whole(machines: Machines) -> None:
    """A run folder, a push, its size and its upkeep take files out of a pack as they do others."""
    digest = machines.works(machines.session("one", write=True), "one")
    machines.session("two").pull([BASE], [PART], quiet)
    store, root = machines.store("two"), machines.folder / "two"
    (pack,) = (root / "packs").glob("*/*")
    assert [path for path in root.rglob("*") if path.is_file()] == [pack]
    assert (store.usage().packs, store.usage().size_bytes) == (1, pack.stat().st_size)
    copy = machines.folder / "run" / "artifacts" / "ab" / "c"
    store.copy_object(digest, copy)
    assert copy.read_bytes() == store.file(f"objects/{digest[:2]}/{digest[2:]}")
    assert store.put(b"text") == digest
    assert [path for path in root.rglob("*") if path.is_file()] == [pack]
    assert store.remove_damaged() == []
    pack.write_bytes(pack.read_bytes()[:-1] + b"?")
    assert store.remove_damaged() == [pack.relative_to(root).as_posix()]
    with pytest.raises(OSError):
        store.copy_object(digest, copy.with_name("d"))


def test_a_pack_that_goes_away_in_mid_run_takes_its_files_along(machines: Machines) -> None:
    digest = machines.works(machines.session("one", write=True), "one")
    machines.session("two").pull([BASE], [PART], quiet)
    store = machines.store("two")
    assert store.has(digest)
    assert store.prune(0) > 0
    assert store.get(digest) is None
    assert not store.has(digest)
    assert store.get_record("compile", KEY) is None


def test_a_pack_that_another_process_is_writing_is_not_read(machines: Machines) -> None:
    digest = machines.works(machines.session("one", write=True), "one")
    machines.session("two").pull([BASE], [PART], quiet)
    (pack,) = (machines.folder / "two" / "packs").glob("*/*")
    part = pack.rename(pack.with_name(".part-" + "0" * 32))
    store = machines.store("two")
    assert not store.has(digest)
    part.rename(pack)
    assert machines.store("two").has(digest)


def test_packs_that_come_at_once_lose_nothing(machines: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_store_session, "_PACK_BYTES", 1)
    writer = machines.session("one", write=True)
    with writer.noting(PART):
        digests = [writer._store.put(f"text {n}".encode()) for n in range(200)]
    writer.push(writer.noted((BASE,)), quiet)
    assert writer.traffic.sent_packs == 200
    reader = machines.session("two")
    reader.pull([BASE], [PART], quiet)
    assert all(map(reader._store.has, digests))


def test_one_pack_serves_the_workloads_of_a_target(machines: Machines) -> None:
    first = machines.session("one", write=True)
    for workload, target in (("a", "sm_90"), ("b", "sm_90"), ("c", "gfx942")):
        with first.noting(part_of(workload, target)):
            first._store.put(f"{workload} {target}".encode())
            first._store.put(b"the same in all")
    first.push(first.noted((BASE, HEAD)), quiet)
    assert first.traffic.sent_packs == 2
    assert len(machines.place.packs_of(BASE)) == 3
    second = machines.session("two")
    second.pull([HEAD], [part_of("b", "sm_90")], quiet)
    assert second.traffic.packs == 1
    assert machines.store("two").get(sha256(b"b sm_90")) == b"b sm_90"
    assert machines.store("two").get(sha256(b"the same in all")) == b"the same in all"
    assert machines.store("two").get(sha256(b"c gfx942")) is None


def test_what_is_large_becomes_several_packs(machines: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each part is named beside all packs that hold a file of it, and beside no other."""
    monkeypatch.setattr(shared_store_session, "_PACK_BYTES", 50)
    first = machines.session("one", write=True)
    texts = {part_of(workload, "sm_90"): [f"{workload} {n}" for n in range(4)] for workload in "abc"}
    for part, rows in texts.items():
        with first.noting(part):
            for text in rows:
                first._store.put(text.encode())
    first.push(first.noted((BASE,)), quiet)
    assert first.traffic.sent_packs > 2
    for part, rows in texts.items():
        reader = machines.session(f"reader of {part[0]}")
        reader.pull([BASE], [part], quiet)
        assert reader.traffic.packs < first.traffic.sent_packs
        assert all(reader._store.get(sha256(text.encode())) == text.encode() for text in rows)


# trouble


@dataclass
class Failing:
    """A place that answers so often and then never again."""

    place: Place
    answers: int
    url: str = "s3://gone"

    def _count(self) -> None:
        self.answers -= 1
        if self.answers < 0:
            raise PlaceError("the shared store s3://gone does not answer: timed out")

    def __getattr__(self, name: str) -> Any:
        self._count()
        return getattr(self.place, name)


@pytest.mark.parametrize("answers", [0, 1, 2])
def test_a_server_that_goes_away_ends_its_use_and_not_the_run(machines: Machines, answers: int) -> None:
    machines.works(machines.session("one", write=True), "one")
    second = machines.session("two", write=True, place=Failing(machines.place, answers))
    second.pull([BASE, HEAD], [PART], quiet)
    machines.works(second, "two", "made here")
    assert "timed out" in second.trouble
    assert any("was made here" in note for note in second.notes())
    assert machines.store("two").get(sha256(b"made here")) is not None


# pruning


def test_the_oldest_packs_go_and_no_name_leads_nowhere(machines: Machines) -> None:
    machines.works(machines.session("one", write=True), "one")
    machines.works(machines.session("two", write=True), "two", "more", part_of("other", "sm_90"))
    pruned = pruning.prune(machines.place, 0, None)
    assert (pruned.packs, pruned.left) == (2, 0)
    assert {name for name in machines.files() if not name.endswith(".txt")} == set()
    machines.works(machines.session("one", write=True), "one")
    assert pruning.prune(machines.place, None, 1.0).packs == 0
    assert pruning.prune(machines.place, None, 0.0).left == 0
