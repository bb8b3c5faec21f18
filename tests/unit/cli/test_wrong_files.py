"""Files of another kind than a command takes: the message says which one it needs."""

import pytest

from irdiff import config
from irdiff.cli.time_command import time_command
from irdiff.errors import UsageError
from irdiff.model import Sides
from irdiff.resolve import ir_files
from tests.unit import runs
from tests.unit.typed import typed


@pytest.mark.parametrize(
    ("base", "head", "words", "hint"),
    [
        ("a.ptx", "b.ptx", "no Triton compiler takes", "irdiff normalize a.ptx"),
        ("a.ptx", "b.ttgir", "not two files of one stage", "both in .ttgir"),
    ],
)
def test_texts_that_no_compiler_takes(tmp_path, monkeypatch, base, head, words, hint):
    monkeypatch.chdir(tmp_path)
    paths = Sides(base=tmp_path / base, head=tmp_path / head).map(lambda path: path.relative_to(tmp_path))
    with pytest.raises(UsageError, match=words) as caught:
        ir_files.sides(paths, (), None, config.load())
    assert hint in caught.value.hint


def test_timings_without_their_run_are_not_taken(tmp_path):
    folder = runs.saved(tmp_path / "run", runs.run(runs.case()))
    (tmp_path / "timing.json").write_text("{}")
    with pytest.raises(UsageError, match="does not say which binaries were timed"):
        typed(time_command, folder, "--take", tmp_path / "timing.json")
