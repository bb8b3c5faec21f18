"""Tells which of the programs that a program starts may launch kernels: all that are not listed here."""

from __future__ import annotations

import os
import re
import shutil

from . import shared_files

_LAUNCH_NOTHING = frozenset(
    # compilers and what they start; torch and Triton start some of these
    "as c++ cc clang clang++ g++ gcc hipcc hipconfig icx ld ld.lld ldd lld ninja nvcc ptxas".split()
    # what reads binaries
    + "cuobjdump file nm nvdisasm objdump readelf".split()
    # what tells about the machine; matplotlib, which `triton.testing` imports, asks for its fonts
    + "amd-smi amdgpu-arch arch date df fc-list free getconf hostname id ldconfig lscpu lspci nproc".split()
    + "numactl nvidia-smi rocm-smi rocm_agent_enumerator rocminfo uname uptime whoami".split()
    # git, and small tools of a shell
    + "cat cd clear echo false git grep head ls mkdir pwd rm rmdir sleep stty tail test tput true wc".split()
    + ["which"]
)
_SHELLS = frozenset({"sh", "bash", "dash"})
_PYTHON = re.compile(r"(^|[/\s])python[\d.]*(\s|$)")
_INTO_NOTHING = re.compile(r"(?:\d?>>?|&>)\s*(?:/dev/null|&\d)")
_SEPARATOR = re.compile(r"[|&;\n]+")
_NOT_READ = re.compile(r"[<>`(){}]")
"""A command with one of these is not taken apart: it may start or write anything."""
PYTHON = "another Python process"


def may_launch(executable, words):
    """Returns the name of a started program that may launch kernels, `PYTHON` for a Python, or None.

    words: a list of words, or the command of a shell.
    """
    is_command = isinstance(words, (str, bytes))
    texts = [os.fsdecode(word) for word in ([words] if is_command else words)]
    programs = [os.fsdecode(executable or texts[0])]
    if is_command or (os.path.basename(programs[0]) in _SHELLS and texts[1:2] == ["-c"] and len(texts) == 3):
        programs = _of_command(texts[-1])
    others = [program for program in programs if not _launches_nothing(program)]
    if not others:
        return None
    return PYTHON if _PYTHON.search(" ".join([*others, *texts])) else os.path.basename(others[0])


def _of_command(command):
    rest = _INTO_NOTHING.sub(" ", command)
    if _NOT_READ.search(rest):
        return ["sh"]
    return [words[0] for words in map(str.split, _SEPARATOR.split(rest)) if words]


def _launches_nothing(program):
    """A file of the repository may have any name."""
    if os.path.basename(program) not in _LAUNCH_NOTHING:
        return False
    path = program if os.sep in program else shutil.which(program)
    return path is None or not shared_files.is_own(path)
