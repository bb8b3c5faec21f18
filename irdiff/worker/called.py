"""Which functions of a corpus ran, or were compiled by the frontend, while a workload was captured.

A function is known by its file and its first line, that of its first decorator. Functions of other files than
the corpus's own have absolute paths, and are not listed.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading

_codes = {}
"""{id: code}, kept so that an id stays its own."""


@contextlib.contextmanager
def watched():
    """While open, every call in this process is noted, in all of its threads."""
    sys.setprofile(_on_event)
    threading.setprofile(_on_event)
    try:
        yield
    finally:
        threading.setprofile(None)
        sys.setprofile(None)


@contextlib.contextmanager
def paused():
    """While open, the calls of this thread are not noted: the frontend makes many, and not to the corpus."""
    before = sys.getprofile()
    sys.setprofile(None)
    try:
        yield
    finally:
        sys.setprofile(before)


def note(code):
    """Counts a function as called: the frontend compiled it."""
    _codes[id(code)] = code


def report():
    """`mykernels/rope.py:12` of each function."""
    found = {
        f"{code.co_filename}:{code.co_firstlineno}"
        for code in _codes.values()
        if not os.path.isabs(code.co_filename) and not code.co_filename.startswith("<")
    }
    return sorted(found)


def _on_event(frame, event, argument):
    if event == "call":
        _codes[id(frame.f_code)] = frame.f_code
