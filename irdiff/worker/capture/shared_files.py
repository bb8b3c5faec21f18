"""Recognizes files that both sides and other runs share: those outside of the repository's copy and of the
folders of this capture (`own_folder`). What one side writes there may change what the other one launches.

Data that a program reads elsewhere are the same for both sides, as its packages are. But Python code, and a
file below a folder that everybody may write to, such as /tmp, may stem from another capture. So may a file
that an earlier capture changed: irdiff keeps the names of these.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import stat
import sys

import triton

from ..loaded import WORKER
from . import own_folder

_OF_THE_KERNEL = ("/proc/", "/sys/")
_CODE = ".py"
_own: tuple = ()
"""The repository's copy, and folders of this capture."""
_installed: tuple = ()
"""Folders that the interpreter imports from before the program runs."""
_kept_in = ""
"""The folder with one file for each file that a capture changed; empty if none is kept."""
_changed_before: frozenset = frozenset()


def begin(repository, kept_in=None):
    global _own, _installed, _kept_in, _changed_before
    _kept_in, _changed_before = kept_in or "", frozenset()
    with contextlib.suppress(OSError):
        _changed_before = frozenset(os.listdir(_kept_in) if _kept_in else ())
    _own = _prefixes(repository, *own_folder.entered)
    places = (os.path.dirname(os.path.realpath(triton.__file__)), WORKER, sys.prefix, sys.base_prefix)
    _installed = _prefixes(*places, *filter(os.path.isabs, sys.path))


def _prefixes(*folders):
    return tuple(
        os.path.join(place, "") for folder in folders for place in {folder, os.path.realpath(folder)}
    )


def is_own(path):
    return os.path.realpath(path).startswith(_own)


def place_of_changed(path):
    """Returns the place that a report names; empty for a file that is not shared."""
    path = os.path.realpath(path)
    if path.startswith((*_own, *_OF_THE_KERNEL)) or not _is_file_or_none(path):
        return ""
    if _kept_in:
        _keep(_kept_in, path)
        _keep(_kept_in, os.path.join(os.path.dirname(path), ""))
    return _place(path)


@functools.lru_cache(maxsize=None)
def _keep(folder, path):
    """Writes once what a program may change many times."""
    with contextlib.suppress(OSError):  # a store that cannot be written has its own error
        with open(os.path.join(folder, _name_of(path)), "wb") as file:
            file.write(os.fsencode(path))


def place_of_read(path):
    """Returns the place that a report names; empty for a file that is not shared."""
    if path.startswith(_OF_THE_KERNEL) or (path.startswith(_installed) and not _changed_before):
        return ""
    named, path = path, os.path.realpath(path)
    if path.startswith(_own) or not os.path.isfile(path):
        return ""
    if _changed_before and any(map(_was_changed_before, {named, path})):
        return _place(path)
    is_shared = not path.startswith((*_own, *_installed)) and (
        path.endswith(_CODE) or _below_open_folder(path)
    )
    return _place(path) if is_shared else ""


def place_of_looked_at(path):
    """Returns the place that a report names, if an earlier capture changed the file or the folder."""
    if not _changed_before or path.startswith((*_own, *_OF_THE_KERNEL)):
        return ""
    if _name_of(os.path.join(path, "")) in _changed_before:
        return path
    return _place(path) if _was_changed_before(path) else ""


def _was_changed_before(path):
    """True as well if a folder above it was renamed or linked."""
    names = path.split(os.sep)
    return any(_name_of(os.sep.join(names[:count])) in _changed_before for count in range(2, len(names) + 1))


def _name_of(path):
    return hashlib.sha256(os.fsencode(path)).hexdigest()


def _is_file_or_none(path):
    """A device or a pipe keeps nothing."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return True
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode)


def _place(path):
    return _below_open_folder(path) or os.path.dirname(path)


def _below_open_folder(path):
    """Returns `/tmp/cache` for `/tmp/cache/kernels/gk.py`; empty if not everybody may write to a folder above
    the file.
    """
    names = path.split(os.sep)
    for count in range(2, len(names)):
        if _is_open(os.sep.join(names[:count])):
            return os.sep.join(names[: count + 1])
    return ""


@functools.lru_cache(maxsize=None)
def _is_open(folder):
    try:
        return bool(os.stat(folder).st_mode & stat.S_IWOTH)
    except OSError:
        return False
