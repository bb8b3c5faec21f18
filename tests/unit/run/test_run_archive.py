"""Archives and reasons from an attacker: nothing is written outside the folder or unpacked past its bound, nothing is markup."""

import gzip
import io
import json
import struct
import tarfile
import zipfile

import pytest
import zstandard

from irdiff.errors import RunFolderError
from irdiff.report import markdown
from irdiff.run import failure, run_archive, run_folder
from irdiff.run.failure import PartFailure
from irdiff.store import sha256
from tests.unit import runs

ARTIFACT = b"module {}"
ARTIFACT_NAME = f"artifacts/{sha256(ARTIFACT)[:2]}/{sha256(ARTIFACT)[2:]}"


@pytest.fixture
def members():
    return {
        "run.json": run_folder.dump(runs.run(runs.case())),
        ARTIFACT_NAME: zstandard.compress(ARTIFACT),
        "report.html": b"<html>",
    }


def _zip(path, members, prefix=""):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(prefix + name, content)
    return path


def _tar(members, prefix="", *extra):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(prefix + name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
        for info in extra:
            archive.addfile(info)
    return packed.getvalue()


def _packed(folder, kind, members, prefix=""):
    path = folder / f"run.{kind}"
    if kind == "zip":
        return _zip(path, members, prefix)
    pack = {"tar": bytes, "tar.gz": gzip.compress, "tar.zst": zstandard.compress}[kind]
    path.write_bytes(pack(_tar(members, prefix)))
    return path


def _refused(path, pattern):
    before = set(path.parent.rglob("*"))
    with pytest.raises(RunFolderError, match=pattern) as caught, run_archive.opened(path):
        pass
    assert "\x1b" not in str(caught.value)
    assert set(path.parent.rglob("*")) == before


@pytest.mark.parametrize("prefix", ["", "./", "run-1/", "./run-1/"])
@pytest.mark.parametrize("kind", ["zip", "tar", "tar.gz", "tar.zst"])
def test_a_packed_run_is_opened(tmp_path, members, kind, prefix):
    path = _packed(tmp_path, kind, members, prefix)
    with run_archive.opened(path) as folder:
        assert run_folder.load(folder).cases
        assert run_folder.artifact(folder, sha256(ARTIFACT)) == ARTIFACT
        assert sorted(entry.name for entry in folder.iterdir()) == ["artifacts", "run.json"]
    assert not folder.exists()


_EVIL = r"../evil /etc/evil a/../../evil ..\evil C:\evil \\host\evil artifacts/../run.json"


@pytest.mark.parametrize("name", _EVIL.split())
@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_a_path_that_leaves_the_folder_is_refused(tmp_path, members, kind, name):
    _refused(_packed(tmp_path, kind, {**members, name: b"x"}), "a member is called")


def test_a_link_or_device_is_refused(tmp_path, members):
    path = _zip(tmp_path / "run.zip", members)
    with zipfile.ZipFile(path, "a") as archive:
        link = zipfile.ZipInfo("timing.json")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
    _refused(path, "link or a device")
    for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE, tarfile.GNUTYPE_SPARSE):
        odd = tarfile.TarInfo("timing.json")
        odd.type, odd.linkname = kind, "/etc/passwd"
        (tmp_path / "run.tar").write_bytes(_tar(members, "", odd))
        _refused(tmp_path / "run.tar", "link or a device")


@pytest.mark.parametrize("kind", ["zip", "tar.gz", "tar.zst"])
def test_a_bomb_is_refused(tmp_path, members, kind, monkeypatch):
    monkeypatch.setattr(run_archive, "MAX_UNPACKED_BYTES", 4 << 20)
    members["timing.json"] = bytes(32 << 20)
    _refused(_packed(tmp_path, kind, members), "unpacks to more than")


def test_sizes_that_lie_and_huge_directories_or_headers_are_refused_before_they_are_read(
    tmp_path, members, monkeypatch
):
    path = _zip(tmp_path / "lies.zip", {**members, "timing.json": bytes(1 << 20)})
    path.write_bytes(path.read_bytes().replace(struct.pack("<L", 1 << 20), struct.pack("<L", 10)))
    _refused(path, "cannot be unpacked")
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 9, 9, 1 << 31, 0, 0)
    (tmp_path / "huge.zip").write_bytes(b"PK" + bytes(100) + end)
    _refused(tmp_path / "huge.zip", "directory is larger")
    header = tarfile.TarInfo("x")
    header.type, header.size = tarfile.XHDTYPE, 6 << 30
    with (tmp_path / "run.tar").open("wb") as file:
        file.write(header.tobuf())
        file.truncate(1 << 30)
    _refused(tmp_path / "run.tar", "header is larger")
    monkeypatch.setattr(run_archive, "MAX_MEMBERS", 10)
    many = {**members, **{f"f{n}": b"" for n in range(20)}}
    _refused(_zip(tmp_path / "run.zip", many), "more than 10")


def test_two_runs_no_run_or_an_odd_member_are_refused(tmp_path, members):
    _refused(_zip(tmp_path / "two.zip", {**members, "other/run.json": b"{}"}), "more than one run")
    _refused(_zip(tmp_path / "none.zip", {"a/b/run.json": b"{}"}), "holds no run.json")
    _refused(tmp_path / "absent.zip", "is not there")
    with zipfile.ZipFile(tmp_path / "odd.zip", "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("run.json", members["run.json"])
    _refused(tmp_path / "odd.zip", "unusual way")


@pytest.mark.parametrize(
    "content", [b"", b"PK", b"PK\5\6" + bytes(18), b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\x1b[2J" * 500]
)
def test_a_damaged_archive_is_refused(tmp_path, content):
    (tmp_path / "run.bin").write_bytes(content)
    _refused(tmp_path / "run.bin", "cannot be unpacked|holds no run.json")


def test_what_is_no_failure_is_refused(tmp_path):
    many = {"schema": "irdiff-failure/1", "parts": [{"step": "x", "code": 1, "lines": []}] * 65}
    typed = [{"step": 1, "code": 0, "lines": []}]
    odd = ({"schema": "irdiff-failure/2", "parts": []}, {"parts": typed}, {}, {"parts": "x" * (2 << 20)})
    for content in ("", "[]", *(json.dumps({**many, **changes}) for changes in odd)):
        (tmp_path / "failure.json").write_text(content)
        with pytest.raises(RunFolderError):
            failure.load(tmp_path)
    (tmp_path / "failure.json").rename(tmp_path / "secret")
    (tmp_path / "secret").write_text(json.dumps({**many, "parts": []}))
    (tmp_path / "failure.json").symlink_to(tmp_path / "secret")
    with pytest.raises(RunFolderError):
        failure.load(tmp_path)


def test_nothing_in_a_reason_is_markup_and_it_fits():
    lines = ("```", "</details>", "@team \x1b[2J", "::add-mask::x")
    hostile = PartFailure(step="@everyone <img src=x> [a](http://b) #1", code=1, lines=lines)
    text = markdown.of_failures([hostile], has_run=False, limit=60_000)
    heading, block = text.split("\n\n````\n", 1)
    assert "@\u200beveryone" in heading
    assert "\\[a\\](" in heading
    assert "<img" not in heading
    assert "http://" not in heading
    assert block.rstrip().endswith("\n````"), "the block has longer marks than its content"
    assert "\x1b" not in block
    long = PartFailure(step="comparing", code=1, lines=("z" * 400,) * 30)
    for limit in (1_000, 2_000, 60_000):
        text = markdown.of_failures([long] * 40, has_run=True, limit=limit)
        assert len(text) <= limit
        assert "more parts" in text
