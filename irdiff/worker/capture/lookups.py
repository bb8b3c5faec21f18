"""Notes files that a program looks for without opening them, by `exists`, `listdir` or an import: those of
the home folder, and those that an earlier capture changed.

Only lines of the repository count: packages look for their own files in every home folder.
"""

from __future__ import annotations

import functools
import os
import pathlib
import sys
import types
import typing

from ..loaded import is_standard
from . import own_folder

_FUNCTIONS = ("stat", "lstat", "access", "readlink")
"""Those of `os.path` and `pathlib` call them, and no audit hook hears of them."""
_PATHLIB = getattr(pathlib, "_NormalAccessor", None)
"""Has functions of `os` for itself before Python 3.11."""
_relative: typing.Any = None
_place_of: typing.Any = None
_note_place: typing.Any = None
_home = ""
"""Empty while nothing is noted."""
looked_for: set = set()


def watch():
    """Affects this process and those forked from it, before the compiler's settings are looked at."""
    for name in _FUNCTIONS:
        function = getattr(os, name)
        noting = _noting(function)
        setattr(os, name, noting)
        if getattr(_PATHLIB, name, None) is function:
            setattr(_PATHLIB, name, staticmethod(noting))
        for functions in (
            os.supports_dir_fd,
            os.supports_effective_ids,
            os.supports_fd,
            os.supports_follow_symlinks,
        ):
            if function in functions:
                functions.add(noting)


def _noting(function):
    @functools.wraps(function)
    def noting(*arguments, **words):
        if _home:
            note(arguments[0] if arguments else words.get("path"), sys._getframe(1))
        return function(*arguments, **words)

    return noting


def begin(relative, place_of, note_place):
    """relative: returns the path of a file of the repository from its root; empty for another file.
    place_of: returns the shared place of a path that an earlier capture changed, which `note_place` notes.
    """
    global _relative, _place_of, _note_place, _home
    _relative, _place_of, _note_place = relative, place_of, note_place
    _home = os.path.join(own_folder.entered[-1], "home", "") if own_folder.entered else ""


def end():
    global _home
    _home = ""


def note(path, frame: "types.FrameType | None"):
    """frame: of the line that looks for the path, or of Python's own code that it calls."""
    if not isinstance(path, (str, bytes, os.PathLike)):
        return
    place = "" if _is_at_home(path) else _place_of(os.path.abspath(os.fsdecode(path)))
    if not place and not _is_at_home(path):
        return
    while frame is not None and _is_pythons_own(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None or not _relative(frame.f_code.co_filename):
        return
    if place:
        _note_place(place)
    else:
        looked_for.add(os.path.abspath(os.fsdecode(path)))


def note_module(place):
    """place: a path without its suffix where no module is."""
    if _is_at_home(place):
        looked_for.update((f"{place}.py", os.path.join(place, "__init__.py")))


def _is_at_home(path):
    return bool(_home) and os.fsdecode(path).startswith(_home)


def _is_pythons_own(file):
    return file.startswith("<frozen") or is_standard(file)
