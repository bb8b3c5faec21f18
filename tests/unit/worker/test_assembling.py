"""What an assembler made is taken again where the same program is given the same, and nowhere else.

The program here counts how often it is started: it is a script, and said to be known by its content.
"""

from __future__ import annotations

import hashlib
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from irdiff.worker import assembling
from irdiff.worker.assembling import Remembered

SCRIPT = r"""#!/bin/sh
echo started >> {count}
echo "Used 16 registers: $*" >&2
if grep -q refused kernel.ptx; then exit 255; fi
cat "$0" kernel.ptx > kernel.cubin
"""
FLAGS = ("-v", "--gpu-name=sm_90a")


@dataclass
class Bench:
    folder: Path
    monkeypatch: pytest.MonkeyPatch
    programs: dict[str, str] = field(default_factory=dict)
    memory: Path | None = None
    recorder: Any = None
    """Of the last run."""

    def __post_init__(self) -> None:
        self.memory = self.folder / "assembled"
        self.program = self.folder / "bin" / "ptxas"
        self.program.parent.mkdir()
        self.put_program(SCRIPT)

    def put_program(self, text: str) -> None:
        self.program.write_text(text.replace("{count}", str(self.folder / "count")))
        self.program.chmod(0o755)
        self.programs[str(self.program)] = hashlib.sha256(self.program.read_bytes()).hexdigest()

    @property
    def started(self) -> int:
        count = self.folder / "count"
        return len(count.read_text().splitlines()) if count.exists() else 0

    def run(
        self, ptx: str = "code", *, flags: tuple[str, ...] = FLAGS, name: str = "k", how: Any = None
    ) -> bytes:
        """As Triton runs it, in a process of its own: the binary."""
        source, wanted = self.folder / f"{name}.ptx", self.folder / f"{name}.o"
        source.write_text(ptx)
        wanted.unlink(missing_ok=True)
        work = self.folder / name
        work.mkdir(exist_ok=True)
        self.recorder = SimpleNamespace(folder=str(work), assembly=None)
        remembered = Remembered(str(self.memory) if self.memory else None, self.programs)
        with self.monkeypatch.context() as patched:
            patched.setattr(subprocess, "Popen", subprocess.Popen)  # for it to be put back
            assembling.watch(self.recorder, remembered)
            with (self.folder / "log").open("w") as log:
                command = [str(self.program), *flags, str(source), "-o", str(wanted)]
                subprocess.run(command, check=True, close_fds=False, **{"stderr": log, **(how or {})})
        return wanted.read_bytes()

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()

    def kept(self) -> list[Path]:
        assert self.memory is not None
        return [path for path in self.memory.rglob("*") if path.is_file()]


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(tmp_path, monkeypatch)


def test_what_was_made_once_is_taken_without_starting_the_program(bench: Bench) -> None:
    made, log = bench.run(), bench.log
    words = bench.recorder.assembly.words
    assert (made[-4:], bench.started) == (b"code", 1)
    assert log.startswith("Used 16 registers: -v --gpu-name=sm_90a kernel.ptx")
    assert bench.run(name="another_file") == made
    assert bench.started == 1
    assert (bench.log, bench.recorder.assembly.log) == (log, log)
    assert bench.recorder.assembly.words == words == [str(bench.program), *FLAGS]


def test_another_source_or_flag_is_assembled(bench: Bench) -> None:
    bench.run()
    assert bench.run("other").endswith(b"other")
    bench.run(flags=(*FLAGS, "-O1"))
    assert bench.started == 3


@pytest.mark.parametrize("form", ["{}", "--options-file={}"])
def test_another_content_of_a_file_that_a_flag_names_is_assembled(bench: Bench, form: str) -> None:
    file = bench.folder / "options"
    for content, started in (("-O1", 1), ("-O1", 1), ("-O2", 2), ("-O1", 2)):
        file.write_text(content)
        bench.run(flags=("-v", form.format(file)))
        assert bench.started == started


def test_another_program_is_started(bench: Bench) -> None:
    first = bench.run()
    bench.put_program(SCRIPT + "# of another release\n")
    assert bench.run() != first
    assert bench.started == 2


def test_a_program_that_is_reached_through_a_link_is_the_same(bench: Bench) -> None:
    bench.run()
    bench.program = bench.folder / "ptxas-link"
    bench.program.symlink_to(bench.folder / "bin" / "ptxas")
    bench.run()
    assert bench.started == 1


def test_a_program_that_is_not_known_by_its_content_is_always_started(bench: Bench) -> None:
    bench.programs.clear()
    assert bench.run() == bench.run()
    assert (bench.started, bench.kept()) == (2, [])


def test_nothing_is_remembered_where_nobody_gives_a_folder(bench: Bench) -> None:
    bench.run()
    bench.memory = None
    bench.run()
    bench.run()
    assert bench.started == 3


@pytest.mark.parametrize("content", [b"", b"cut", b"0\n0\n0", None])
def test_a_damaged_memory_is_made_again(bench: Bench, content: bytes | None) -> None:
    made = bench.run()
    (path,) = bench.kept()
    path.write_bytes(path.read_bytes()[:-1] if content is None else content)
    assert bench.run() == made
    assert bench.run() == made
    assert bench.started == 2


def test_a_failing_run_is_not_remembered(bench: Bench) -> None:
    for _ in range(2):
        with pytest.raises(subprocess.CalledProcessError):
            bench.run("refused")
        assert "Used 16 registers" in bench.log
    assert (bench.started, bench.kept()) == (2, [])


def test_a_memory_that_cannot_be_written_is_done_without(bench: Bench) -> None:
    assert bench.memory is not None
    bench.memory.write_text("a file in its place")
    assert bench.run() == bench.run()
    assert bench.started == 2


@pytest.mark.parametrize("how", [{"stderr": subprocess.PIPE}, {"stdout": subprocess.PIPE}])
def test_a_stage_that_captures_what_is_printed_gets_it_each_time(bench: Bench, how: dict[str, int]) -> None:
    first, second = bench.run(how=how), bench.run(how=how)
    assert first == second
    assert (bench.started, bench.kept()) == (2, [])


def test_other_programs_are_run_as_they_are(bench: Bench) -> None:
    bench.program = bench.program.with_name("ld.lld")
    bench.program.write_text('#!/bin/sh\ncp "$1" "$3"\n')
    bench.program.chmod(0o755)
    assert bench.run(flags=()) == b"code"
    assert bench.recorder.assembly is None
