"""Gives each process that captures an empty home folder, and an empty folder for temporary files.

So no capture sees what another one left there, or what lies in the user's home. irdiff starts the worker with
a new folder as TMPDIR, and deletes it when the worker ends. A process gets its folders below that of its
parent.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import importlib.machinery
import os
import shutil
import tempfile

entered: list = []
"""The folders that this process, and those that it was forked from, got here."""
_FIRST_DESCRIPTOR = 900
"""Descriptors of the folders. They are the same in each process, and below the usual limit of 1,024."""


_OF_THE_WORKER = tempfile.gettempdir()


def _of_child(pid):
    return os.path.join(entered[-1], "tmp", str(pid)) if entered else os.path.join(_OF_THE_WORKER, str(pid))


def enter():
    folder = _of_child(os.getpid())
    home, temporary = os.path.join(folder, "home"), os.path.join(folder, "tmp")
    for place in (home, temporary):
        os.makedirs(place, exist_ok=True)
    # Triton remembers the home folder of the moment when it is imported, unless this variable is set
    os.environ.update(HOME=home, TMPDIR=temporary, TRITON_HOME=home)
    tempfile.tempdir = None  # it remembers TMPDIR
    entered.append(folder)
    with contextlib.suppress(OSError):  # the limit of open files is lower
        _name_code_alike(folder)


def _name_code_alike(folder):
    """The name of a kernel's file reaches the machine code of its assertions, and each side has another
    folder. So code below the folder gets a name that both sides share, and that leads to the same file.
    """
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    number = fcntl.fcntl(opened, fcntl.F_DUPFD_CLOEXEC, _FIRST_DESCRIPTOR)
    os.close(opened)
    loader = importlib.machinery.SourceFileLoader
    original, inside = loader.source_to_code, os.path.join(folder, "")

    @functools.wraps(original)
    def source_to_code(self, data, path, **words):
        if isinstance(path, str) and path.startswith(inside):
            path = f"/proc/self/fd/{number}/{path[len(inside) :]}"
        return original(self, data, path, **words)

    loader.source_to_code = source_to_code  # type: ignore[method-assign]


def remove(pid):
    """Deletes what is left of a child that has called `enter`, and that has ended."""
    shutil.rmtree(_of_child(pid), ignore_errors=True)
