"""A result of an assembler is taken again where the same program is given the same, and nowhere else.

The program here counts how often it is started: it is a script, and listed as known by its content.
"""

import hashlib
import subprocess
from types import SimpleNamespace

import pytest

from irdiff.worker.compile import assembling
from irdiff.worker.compile.assembling import Remembered
from tests.texts import text_of

SCRIPT = text_of("worker/ptxas.sh")
FLAGS = ("-v", "--gpu-name=sm_90a")


class Assembler:
    def __init__(self, folder):
        self.folder = folder
        self.memory = folder / "assembled"
        self.program = folder / "bin" / "ptxas"
        self.program.parent.mkdir()
        self.programs = {}
        self.put_program(SCRIPT)

    def put_program(self, text):
        self.program.write_text(text.replace("{count}", str(self.folder / "count")))
        self.program.chmod(0o755)
        self.programs[str(self.program)] = hashlib.sha256(self.program.read_bytes()).hexdigest()

    @property
    def started(self):
        count = self.folder / "count"
        return len(count.read_text().splitlines()) if count.exists() else 0

    def run(self, ptx="code", *, flags=FLAGS, name="k", **how):
        """As Triton runs it, in a process of its own: the binary."""
        source, wanted = self.folder / f"{name}.ptx", self.folder / f"{name}.o"
        source.write_text(ptx)
        wanted.unlink(missing_ok=True)
        (self.folder / name).mkdir(exist_ok=True)
        self.recorder = SimpleNamespace(folder=str(self.folder / name), assembler_flags=None)
        remembered = Remembered(str(self.memory) if self.memory else None, self.programs)
        watched = assembling.watched(self.recorder, remembered)
        with watched, (self.folder / "log").open("w") as log:
            command = [str(self.program), *flags, str(source), "-o", str(wanted)]
            subprocess.run(command, check=True, close_fds=False, **{"stderr": log, **how})
        return wanted.read_bytes()

    @property
    def log(self):
        return (self.folder / "log").read_text()

    def kept(self):
        return [path for path in (self.folder / "assembled").rglob("*") if path.is_file()]


@pytest.fixture
def ptxas(tmp_path):
    return Assembler(tmp_path)


def test_an_earlier_result_is_taken_without_starting_the_program(ptxas):
    made, log = ptxas.run(), ptxas.log
    assert (made[-4:], ptxas.started) == (b"code", 1)
    assert log.startswith("Used 16 registers: -v --gpu-name=sm_90a kernel.ptx")
    assert ptxas.run(name="another_file") == made
    assert (ptxas.log, ptxas.recorder.assembler_log) == (log, log)
    assert ptxas.recorder.assembler_flags == [str(ptxas.program), *FLAGS]
    ptxas.program = ptxas.folder / "ptxas-link"
    ptxas.program.symlink_to(ptxas.folder / "bin" / "ptxas")
    assert ptxas.run() == made
    assert ptxas.started == 1


def test_anything_else_is_assembled(ptxas):
    first = ptxas.run()
    assert ptxas.run("other").endswith(b"other")
    ptxas.run(flags=(*FLAGS, "-O1"))
    assert ptxas.started == 3
    ptxas.put_program(SCRIPT + "# of another release\n")
    assert ptxas.run() != first
    ptxas.memory = None
    ptxas.run()
    assert ptxas.started == 5
    ptxas.memory, ptxas.programs = ptxas.folder / "elsewhere", {}
    assert ptxas.run() == ptxas.run()
    assert ptxas.started == 7 and not ptxas.memory.exists(), "it is not known by its content"


@pytest.mark.parametrize("form", ["{}", "--options-file={}"])
def test_files_that_a_flag_names_count_by_content(ptxas, form):
    file = ptxas.folder / "options"
    for content, started in (("-O1", 1), ("-O1", 1), ("-O2", 2), ("-O1", 2)):
        file.write_text(content)
        ptxas.run(flags=("-v", form.format(file)))
        assert ptxas.started == started


@pytest.mark.parametrize("content", [b"", b"cut", b"0\n0\n0", None])
def test_a_damaged_memory_is_made_again(ptxas, content):
    made = ptxas.run()
    (path,) = ptxas.kept()
    path.write_bytes(path.read_bytes()[:-1] if content is None else content)
    assert ptxas.run() == ptxas.run() == made
    assert ptxas.started == 2


def test_a_result_that_lies_under_the_key_of_another_is_made_again(ptxas):
    one, other = ptxas.run("code"), ptxas.run("other code")
    paths = ptxas.kept()
    contents = [path.read_bytes() for path in paths]
    for path, content in zip(paths, reversed(contents), strict=True):
        path.write_bytes(content)
    assert (ptxas.run("code"), ptxas.run("other code")) == (one, other)
    assert ptxas.started == 4


def test_a_failing_run_is_not_remembered(ptxas):
    for _ in range(2):
        with pytest.raises(subprocess.CalledProcessError):
            ptxas.run("refused")
        assert "Used 16 registers" in ptxas.log
    assert (ptxas.started, ptxas.kept()) == (2, [])


def test_a_memory_that_cannot_be_written_is_done_without(ptxas):
    (ptxas.folder / "assembled").write_text("a file in its place")
    assert ptxas.run() == ptxas.run()
    assert ptxas.started == 2


@pytest.mark.parametrize("stream", ["stderr", "stdout"])
def test_a_stage_that_captures_what_is_printed_gets_it_each_time(ptxas, stream):
    assert ptxas.run(**{stream: subprocess.PIPE}) == ptxas.run(**{stream: subprocess.PIPE})
    assert (ptxas.started, ptxas.kept()) == (2, [])


def test_other_programs_run_as_they_are(ptxas):
    ptxas.program = ptxas.program.with_name("ld.lld")
    ptxas.program.write_text('#!/bin/sh\ncp "$1" "$3"\n')
    ptxas.program.chmod(0o755)
    assert ptxas.run(flags=()) == b"code"
    assert ptxas.recorder.assembler_flags is None
