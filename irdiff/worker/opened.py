"""Which files of a repository were opened while a workload was captured: readers of a report are told."""

from __future__ import annotations

import os
import sys

_below = None
"""The folder whose files are noted; None while nobody asks."""
_found = set()


def watch():
    """Makes this process, and those forked from it, able to note files. There is no way back."""
    sys.addaudithook(_on_event)


def begin(folder):
    """From now on files below the folder are noted; nothing is where it is None."""
    global _below
    _below = os.path.join(folder, "") if folder else None


def report():
    """What was opened, relative to the folder. Notes nothing more."""
    global _below
    folder, _below = _below, None
    if folder is None:
        return []
    return sorted(path[len(folder) :] for path in _found if path.startswith(folder) and os.path.isfile(path))


def _on_event(event, arguments):
    if _below is not None and event == "open" and isinstance(arguments[0], (str, bytes, os.PathLike)):
        _found.add(os.path.abspath(os.fsdecode(arguments[0])))
