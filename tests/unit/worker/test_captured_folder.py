"""A recording writes over nothing but an earlier recording that nobody has changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from irdiff.worker import captured_folder

FILES = {"train/softmax.py": "the kernel of softmax\n", "train/matmul.py": "the kernel of matmul\n"}


def record(folder: Path, files: dict[str, str], text: str = "# Kernels of train.py\n") -> None:
    """What `workload_files.write` does with the texts of a recording."""
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
    readme = captured_folder.readme(str(folder), text, files)
    for name, content in {**files, "README.md": readme}.items():
        (folder / name).write_text(content, encoding="utf-8")


def strangers(folder: Path, family: str = "train") -> list[str]:
    found: list[str] = captured_folder.strangers(str(folder), family)
    return found


def test_an_absent_an_empty_and_a_recorded_folder_are_free(tmp_path: Path) -> None:
    assert strangers(tmp_path / "absent") == []
    assert strangers(tmp_path) == []
    record(tmp_path, FILES)
    assert strangers(tmp_path) == []
    assert "# Kernels of train.py\n" in (tmp_path / "README.md").read_text()


def test_files_that_a_recording_does_not_write_are_in_nobodys_way(tmp_path: Path) -> None:
    record(tmp_path, FILES)
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.py").write_text("mine")
    assert strangers(tmp_path) == []
    assert strangers(tmp_path, "other") == ["other/mine.py"]


def test_recordings_of_two_programs_share_a_folder(tmp_path: Path) -> None:
    record(tmp_path, FILES)
    record(tmp_path, {"serve/attention.py": "the kernel of attention\n"}, "# Kernels of serve.py\n")
    assert strangers(tmp_path, "train") == strangers(tmp_path, "serve") == []
    (tmp_path / "train" / "softmax.py").write_text("made better")
    record(tmp_path, {"serve/attention.py": "another\n"})
    assert strangers(tmp_path, "train") == ["train/softmax.py"]


@pytest.mark.parametrize("name", ["README.md", "train/softmax.py"])
def test_what_was_changed_since_is_somebodys(tmp_path: Path, name: str) -> None:
    record(tmp_path, FILES)
    (tmp_path / name).write_text("# made better\n" + (tmp_path / name).read_text())
    assert strangers(tmp_path) == [name]


def test_a_readme_that_goes_on_after_the_comment_is_somebodys(tmp_path: Path) -> None:
    record(tmp_path, FILES)
    with (tmp_path / "README.md").open("a") as file:
        file.write("What I saw.\n")
    assert strangers(tmp_path) == ["README.md"]


def test_the_root_of_a_project_is_refused(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("# My project\n")
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "__init__.py").write_text("")
    assert strangers(tmp_path) == ["README.md", "train/__init__.py"]


def test_links_and_files_in_the_place_of_folders_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    assert strangers(tmp_path / "file") == ["a file of this name"]
    (tmp_path / "train").symlink_to(tmp_path)
    assert strangers(tmp_path) == ["train"]
    (tmp_path / "README.md").symlink_to("file")
    assert strangers(tmp_path, "other") == ["README.md"]


def test_what_an_earlier_recording_left_is_named_and_stays(tmp_path: Path) -> None:
    record(tmp_path, {**FILES, "train/old.py": "old\n", "train/better.py": "good\n"})
    record(tmp_path, {"serve/attention.py": "the kernel of attention\n"}, "# Kernels of serve.py\n")
    (tmp_path / "train" / "better.py").write_text("made better")
    (tmp_path / "train" / "mine.py").write_text("mine")
    (tmp_path / "train" / "matmul.py").unlink()
    now = {"train/softmax.py": "another\n"}
    record(tmp_path, now)
    assert captured_folder.left(str(tmp_path), "train", now) == ["train/old.py"]
    assert captured_folder.left(str(tmp_path), "train", {**now, "train/old.py": ""}) == []
    assert (tmp_path / "train" / "old.py").is_file()
    record(tmp_path, now)
    assert captured_folder.left(str(tmp_path), "train", now) == ["train/old.py"], "said until it is gone"
