"""Runs that nobody wrote by accident: each is refused with one clear line, or read as what it is."""

import json
import os
from dataclasses import replace

import jsonschema
import pytest
import zstandard

from irdiff.errors import RunFolderError, StoreError
from irdiff.model import Verdict
from irdiff.run import run_checks, run_folder
from irdiff.store import Store, sha256
from tests.unit import runs
from tests.unit.golden import golden
from tests.unit.report.test_recorded_runs import recorded


@pytest.fixture
def folder(tmp_path):
    cases = [
        runs.case("a/x:1@sm_90", Verdict.CHANGED, base={"registers": 1}, head={"registers": 2.5}),
        runs.case("a/x:2@sm_90", Verdict.BROKEN),
        runs.case("a/x:1@gfx942"),
        runs.case("a/x:2@gfx942", Verdict.ADDED),
        runs.case("a/x:3@gfx942", Verdict.IR_ONLY, metadata=runs.case().metadata),
    ]
    return runs.saved(tmp_path / "run", runs.run(*cases, groups=(runs.group("g1", "a/x:1@sm_90"),)))


def _edit(folder, change):
    rows = json.loads((folder / "run.json").read_bytes())
    change(rows)
    (folder / "run.json").write_text(json.dumps(rows))


def _refused(folder, pattern):
    with pytest.raises(RunFolderError, match=pattern) as caught:
        run_folder.load(folder)
    assert str(caught.value).isascii() or "…" in str(caught.value)
    assert "\x1b" not in str(caught.value)


def _set(path, value):
    *parents, last = [int(part) if part.isdigit() else part for part in path.split(".")]

    def change(rows):
        for part in parents:
            rows = rows[part]
        rows[last] = value

    return change


@pytest.mark.parametrize(
    "row", golden("forged-fields")["field"], ids=lambda row: f"{row['path']} {row.get('value')}"
)
def test_a_forged_field_is_refused(folder, row):
    _edit(folder, _set(row["path"], row.get("value")))
    _refused(folder, row["pattern"])


def test_a_launch_under_another_digest_and_deep_metadata_are_refused(folder):
    honest = (folder / "run.json").read_bytes()
    _edit(folder, lambda rows: rows["launches"].update({"f" * 64: rows["launches"].popitem()[1]}))
    _refused(folder, "is not filed under the digest of what it says")
    (folder / "run.json").write_bytes(honest)
    deep = json.loads("[" * 100 + "]" * 100)
    _edit(folder, lambda rows: rows["cases"][0]["metadata"]["base"].update(x=deep))
    _refused(folder, "nested deeper")
    (folder / "run.json").write_bytes(honest)
    _edit(folder, _set("cases.0.id", "\x1b[2J" + "x" * 2000))
    _refused(folder, "has 2004 characters")


CONTENTS = {
    "empty": b"", "null": b"null", "list": b"[]", "cut": b"{", "utf-16": b"\xff\xfe{\x00}\x00",
    "nothing": b'{"schema": "irdiff-run/4"}', "deep": b"[" * 100_000, "deep objects": b'{"a":' * 100_000,
    "digits": b'{"schema": "irdiff-run/4", "x": ' + b"9" * 100_000 + b"}", "surrogate": b'{"schema": "\\ud800"}',
}  # fmt: skip


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
def test_what_is_no_run_is_refused(folder, content):
    (folder / "run.json").write_bytes(content)
    _refused(folder, "run")


def test_a_cut_document_and_one_of_other_fields_are_refused(folder):
    honest = (folder / "run.json").read_bytes()
    for damaged in (honest + b"{}", honest[:-3], honest.replace(b",\n  ", b"\n  ", 1)):
        (folder / "run.json").write_bytes(damaged)
        _refused(folder, "is not a run")
    for entry in ("cases", "runtime"):
        (folder / "run.json").write_bytes(honest)
        _edit(folder, lambda rows, entry=entry: rows.pop(entry))
        _refused(folder, f"'{entry}': Field required: another version of irdiff wrote it")


@pytest.mark.parametrize(
    "name", ["broken", "kernel-option", "one-pass", pytest.param("release", marks=pytest.mark.slow)]
)
def test_a_recorded_run_is_read_as_it_is_written_in_any_layout(name, tmp_path):
    run, path = recorded(name), tmp_path / "run.json"
    path.write_bytes(run_folder.dump(run))
    assert run_folder.load(tmp_path) == run
    rows = json.loads(path.read_bytes())
    few = {**rows, "cases": rows["cases"][::8]}  # jsonschema takes a tenth of a second for each
    jsonschema.validate(few, run_folder.json_schema())
    path.write_text(json.dumps(rows, indent=2, sort_keys=True))
    assert run_folder.load(tmp_path) == run


def test_a_run_beyond_its_bounds_is_refused(folder, monkeypatch):
    monkeypatch.setattr(run_checks, "MAX_CASES", 4)
    _refused(folder, "5 cases, more than 4")
    monkeypatch.setattr(run_checks, "MAX_VALUES", 1000)
    (folder / "run.json").write_bytes(b"[" + b"[]," * 2000 + b"[]]")
    _refused(folder, "more than 1,000 values")
    monkeypatch.setattr(run_checks, "MAX_VALUES", 1_000_000)
    many = b",".join([b"1"] * 100_000)  # an error of each would take a hundred megabytes
    for entry in (b'"groups": [%b]', b'"cases": [{"id": [%b]}]', b'"groups": [[%b]]'):
        (folder / "run.json").write_bytes(b'{"schema": "irdiff-run/4", ' + entry % many + b"}")
        _refused(folder, "not a valid run")
    with (folder / "run.json").open("wb") as file:
        file.truncate(10 << 30)
    _refused(folder, "at most")
    _refused(folder / "nowhere", "irdiff compare")


def test_run_json_must_be_a_plain_file(folder, tmp_path):
    path, real = folder / "run.json", tmp_path / "real.json"
    path.rename(real)
    for make in (lambda: path.symlink_to(real), lambda: os.mkfifo(path), path.mkdir):
        make()
        _refused(folder, "link|plain file")
        path.rmdir() if path.is_dir() else path.unlink()


def _put(folder, digest, packed):
    path = folder / "artifacts" / digest[:2] / digest[2:]
    path.parent.mkdir(parents=True)
    path.write_bytes(packed)
    return path


def test_an_artifact_is_what_its_name_says(folder):
    assert run_folder.dump(run_folder.load(folder)) == (folder / "run.json").read_bytes()
    content = b"module {}" * 1000
    _put(folder, sha256(content), zstandard.compress(content))
    for place in (folder, folder / "run.json"):
        assert run_folder.artifact(place, sha256(content)) == content
    assert run_folder.artifact(folder, sha256(b"other")) is None
    _put(folder, sha256(b"honest"), zstandard.compress(b"forged"))
    with pytest.raises(RunFolderError, match="does not match its digest"):
        run_folder.artifact(folder, sha256(b"honest"))


def test_what_unpacks_to_too_much_is_refused(folder, monkeypatch):
    monkeypatch.setattr(run_folder, "MAX_ARTIFACT_BYTES", 1 << 20)
    # RFC 8878 3.1.1: magic, descriptor with an 8-byte content size and a single segment, then the size
    promise = b"\x28\xb5\x2f\xfd" + b"\xe0" + (1 << 42).to_bytes(8, "little") + b"\x01\x00\x00"
    bombs = {
        "a" * 64: (zstandard.compress(bytes(64 << 20)), "unpacks to more than"),
        "b" * 64: (promise, "damaged"),
    }
    for digest, (packed, reason) in bombs.items():
        _put(folder, digest, packed)
        with pytest.raises(RunFolderError, match=reason):
            run_folder.artifact(folder, digest)


@pytest.mark.parametrize("linked", ["artifacts", "folder", "file"])
def test_no_link_is_followed_on_the_way(folder, tmp_path, linked):
    content = b"secret"
    path = _put(folder, sha256(content), zstandard.compress(content))
    moved = {"artifacts": folder / "artifacts", "folder": path.parent, "file": path}[linked]
    moved.rename(tmp_path / "elsewhere")
    moved.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RunFolderError, match="it is a link, or below one"):
        run_folder.artifact(folder, sha256(content))


def test_no_path_leaves_the_folder(folder):
    for names in (("..", "x"), ("/etc/passwd",), ("a", ""), (".",), ("a\0b",)):
        with pytest.raises(RunFolderError, match="is not a path of a run folder"):
            run_folder.read_file(folder, names, 100)
    for digest in ("", "../../etc/passwd", "a" * 63, "a" * 65, "A" * 64, "a" * 63 + "\n"):
        with pytest.raises(RunFolderError, match="is not a digest"):
            run_folder.artifact(folder, digest)


def test_a_run_that_contradicts_itself_takes_no_place(tmp_path):
    run = runs.run(runs.case("a/x:1@sm_90"))
    run_folder.write(tmp_path / "run", run, Store(tmp_path / "store"), ())
    with pytest.raises(RunFolderError, match="its summary is not that of its cases"):
        run_folder.write(tmp_path / "run", replace(run, cases=()), Store(tmp_path / "store"), ())
    assert run_folder.load(tmp_path / "run") == run


def test_an_artifact_that_the_store_lost_is_named_and_not_taken_for_a_folder_that_cannot_be_written(tmp_path):
    store = Store(tmp_path / "store")
    digest = store.put(b"text")
    store.object_path(digest).unlink()
    with pytest.raises(StoreError, match=f"lacks the artifact {digest[:12]}") as raised:
        run_folder.write(tmp_path / "run", runs.run(runs.case()), store, [digest])
    assert "again" in raised.value.hint
    assert not (tmp_path / "run").exists()
