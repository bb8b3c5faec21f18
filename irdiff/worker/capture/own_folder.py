"""Gives each process that captures an empty home folder, and an empty folder for temporary files.

So no capture sees what another one left there, or what lies in the user's home. irdiff starts the worker with
a new folder as TMPDIR (`base`), and deletes it when the worker ends.
"""

from __future__ import annotations

import os
import shutil
import tempfile

entered: list = []
"""The folders that this process, and those that it was forked from, got here."""


def _of(base, pid):
    return os.path.join(base, str(pid))


def enter(base):
    folder = _of(base, os.getpid())
    home, temporary = os.path.join(folder, "home"), os.path.join(folder, "tmp")
    for place in (home, temporary):
        os.makedirs(place, exist_ok=True)
    # Triton remembers the home folder of the moment when it is imported, unless this variable is set
    os.environ.update(HOME=home, TMPDIR=temporary, TRITON_HOME=home)
    tempfile.tempdir = None  # it remembers TMPDIR
    entered.append(folder)


def remove(base, pid):
    """Call it when the process has ended."""
    shutil.rmtree(_of(base, pid), ignore_errors=True)
