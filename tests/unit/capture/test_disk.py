"""What is asked of the disk: once each, and never content of what has none."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from irdiff.capture.disk import Disk, digest_of_text, state_of


def test_a_file_is_looked_at_once(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("one")
    disk = Disk()
    first = (disk.state(str(path)), disk.digest(str(path)), disk.kind(str(path)), disk.names(str(tmp_path)))
    assert first[1] == hashlib.sha256(b"one").hexdigest()
    path.write_text("longer")
    (tmp_path / "g").touch()
    again = (disk.state(str(path)), disk.digest(str(path)), disk.kind(str(path)), disk.names(str(tmp_path)))
    assert again == first
    other = Disk()
    assert other.state(str(path)) != first[0]
    assert other.digest(str(path)) != first[1]
    assert other.kind(str(path)) != first[2]
    assert other.names(str(tmp_path)) != first[3]


def test_what_is_not_there_has_neither_state_nor_content(tmp_path: Path) -> None:
    disk, gone = Disk(), str(tmp_path / "gone")
    assert (disk.state(gone), disk.digest(gone), disk.kind(gone), disk.names(gone)) == (
        None,
        None,
        "absent",
        None,
    )
    assert state_of("a\0b") is None
    assert disk.kind("a\0b") == "absent"


def test_a_folder_and_a_pipe_have_a_kind_and_no_content(tmp_path: Path) -> None:
    disk, pipe = Disk(), tmp_path / "pipe"
    os.mkfifo(pipe)
    assert disk.digest(str(pipe)) == disk.digest(str(tmp_path)) == "no file"
    assert len({disk.kind(str(pipe)), disk.kind(str(tmp_path)), "absent"}) == 3


def test_a_file_that_cannot_be_read_has_no_digest(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 300)
    assert Disk().digest(str(path)) is None


def test_compiled_python_in_a_folder_is_no_name_of_it(tmp_path: Path) -> None:
    before = Disk().names(str(tmp_path))
    (tmp_path / "__pycache__").mkdir()
    assert Disk().names(str(tmp_path)) == before == digest_of_text("")
    assert digest_of_text(None) is None
