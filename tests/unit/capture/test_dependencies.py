"""A catalog is used again only where everything that capturing it looked at is as it was."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from irdiff.capture import dependencies
from irdiff.capture.disk import Disk, state_of


def report(root: Path, **changes: Any) -> dict[str, Any]:
    """What a worker saw of a workload that read a file, missed one, listed a folder and asked for two paths."""
    files = {str(root / "kernels.py"): state_of(str(root / "kernels.py")), str(root / "absent.json"): None}
    folders = {str(root): "/".join(sorted(path.name for path in root.iterdir()))}
    asked = {str(root / "flag"): "10 0", str(root / "other"): "absent"}
    links = {str(root / "link"): os.readlink(root / "link"), str(root / "flag"): None}
    seen = {"files": files, "folders": folders, "asked": asked, "links": links, "unknowable": []}
    return {**seen, **changes}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "one"
    folder.mkdir()
    (folder / "kernels.py").write_text("BLOCK = 64\n")
    (folder / "flag").write_text("")
    (folder / "link").symlink_to(folder / "flag")
    return folder


def holds(found: dependencies.Dependencies | None, anchor: Path | None) -> bool:
    assert found is not None
    again = dependencies.of_json(dependencies.to_json(found))
    return again.hold(anchor, Disk())


def rewritten(root: Path) -> None:
    """Another content of the same size, with the times that it had."""
    path = root / "kernels.py"
    stat = path.stat()
    path.write_text("BLOCK = 32\n")
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def led_elsewhere(root: Path) -> None:
    """To what is of the same kind and size."""
    (root / "link").unlink()
    (root / "link").symlink_to(root / "absent")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda root: None, True),
        (rewritten, False),
        (lambda root: (root / "kernels.py").unlink(), False),
        (lambda root: (root / "absent.json").write_text("{}"), False),
        (lambda root: (root / "new.py").write_text(""), False),
        (lambda root: (root / "flag").unlink(), False),
        (lambda root: (root / "flag").write_text("longer"), False),
        (lambda root: (root / "other").mkdir(), False),
        (led_elsewhere, False),
        (lambda root: os.utime(root / "kernels.py"), True),
    ],
    ids=[
        "nothing",
        "content",
        "gone",
        "appeared",
        "listed",
        "flag gone",
        "flag grown",
        "asked for",
        "led elsewhere",
        "touched",
    ],
)
@pytest.mark.parametrize("anchored", [False, True])
def test_what_was_looked_at_must_be_as_it_was(
    root: Path, change: Callable[[Path], object], expected: bool, anchored: bool
) -> None:
    anchor = root if anchored else None
    found = dependencies.of_report(report(root), anchor, Disk())
    change(root)
    assert holds(found, anchor) is expected


def test_another_export_with_the_same_content_has_the_same_record(root: Path, tmp_path: Path) -> None:
    found = dependencies.of_report(report(root), root, Disk())
    other = tmp_path / "two"
    other.mkdir()
    shutil.copytree(root, other, dirs_exist_ok=True)
    (other / "link").unlink()
    (other / "link").symlink_to(other / "flag")
    assert holds(found, other)
    (other / "kernels.py").write_text("BLOCK = 32\n")
    assert not holds(found, other)


def test_a_file_that_changed_since_it_was_read_is_no_record(root: Path) -> None:
    stale = report(root)
    (root / "kernels.py").write_text("BLOCK = 128\n")
    assert dependencies.of_report(stale, None, Disk()) is None


def test_where_more_than_files_was_asked_there_is_no_record(root: Path) -> None:
    assert dependencies.of_report(report(root, unknowable=["subprocess.Popen"]), None, Disk()) is None


def test_only_files_below_the_anchor_are_read_of_the_repository(root: Path) -> None:
    found = report(root)
    found["files"]["/elsewhere/data.json"] = "1:2:3:4:5"
    assert dependencies.read_below(found, root) == ("kernels.py",)
