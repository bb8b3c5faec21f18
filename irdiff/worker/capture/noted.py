"""Notes which functions ran, which files were opened and what stayed unseen during the capture of a workload.

A function is identified by its file, relative to the repository or corpus, by the line of its first
decorator or its `def`, and by its name: a lambda may stand in the first line of a function, and modules and
classes have code with a first line, too.
"""

from __future__ import annotations

import _posixsubprocess
import contextlib
import importlib.machinery
import inspect
import json
import os
import pwd
import sys
import threading
import types
import typing
import unittest.mock

import triton.runtime.jit

from .. import protocol
from ..loaded import WORKER, is_standard
from ..record import pytest_assertions
from . import absent_variables, lookups, own_folder, shared_files, started_programs

_codes: dict = {}
"""{id: code}; keeps the code alive, so that its id is not reused."""
_below = None
"""None while files are not noted."""
_root = ""
"""Like `_below`, but stays set afterwards."""
_opened: set = set()
_missing: set = set()
"""Paths without a suffix where a module was looked for and not found."""
_stages: "int | None" = None
"""A descriptor of the file that lists what stages open."""
_seen_by_stages: set = set()
_TRITON = os.path.join(os.path.dirname(os.path.abspath(triton.__file__)), "")
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_IMPORT = "<frozen importlib"
_caveats: dict = {}
"""{(path, line, words): is_compared}; without a place the path is empty and the line 0."""
has_launched = False
"""True if a kernel was launched, and so not run."""
listener: typing.Any = None
"""Receives each caveat while a test is recorded: lines of a test have no relative paths."""
compiled_text: typing.Any = None
"""Returns the text of a stage from this side's compiler, while a test is recorded that reads it."""
_NOT_NOTED = (
    (importlib.machinery.SourceFileLoader, "exec_module"),  # `workloads` loads the corpus with one of its own
    (triton.runtime.jit.JITFunction, "__init__"),
)
"""Imports of other packages and reads of a kernel's source are nine in ten calls, and none goes to the
corpus.
"""
_INDUCTOR = os.path.join("torch", "_inductor", "")


@contextlib.contextmanager
def calls():
    """Notes calls of all threads while open, except those of `_NOT_NOTED`."""
    sys.setprofile(_on_call)
    threading.setprofile(_on_call)
    try:
        with contextlib.ExitStack() as replaced:
            for owner, name in _NOT_NOTED:
                unnoted = paused()(getattr(owner, name))
                replaced.enter_context(unittest.mock.patch.object(owner, name, unnoted))
            yield
    finally:
        threading.setprofile(None)
        sys.setprofile(None)


@contextlib.contextmanager
def paused():
    """Leaves out the calls of this thread while open: the frontend makes many, and none goes to the
    corpus.
    """
    before = sys.getprofile()
    sys.setprofile(None)
    try:
        yield
    finally:
        sys.setprofile(before)


def note(code):
    """Counts a function as called, because the frontend compiled it."""
    _codes[id(code)] = code


def called():
    """Lists the functions as `mykernels/rope.py:12:rope_kernel`."""
    functions = [code for code in _codes.values() if code.co_flags & inspect.CO_OPTIMIZED]
    places = ((_relative(code.co_filename), code.co_firstlineno, code.co_name) for code in functions)
    return sorted({f"{path}:{line}:{name}" for path, line, name in places if path})


def _relative(path):
    """Returns the path below the repository; empty elsewhere. pytest gives modules of tests absolute
    paths.
    """
    if _root and path.startswith(_root):
        return path[len(_root) :]
    return "" if os.path.isabs(path) or path.startswith("<") else path


def _on_call(frame, event, argument):
    if event == "call":
        note(frame.f_code)


def watch_files():
    """Affects this process and those forked from it. It cannot be undone."""
    sys.addaudithook(_on_event)
    lookups.watch()
    start = _posixsubprocess.fork_exec

    def start_noted(words, *rest):  # by it `multiprocessing` starts a process, and tells no hook
        if not any(_TRACKER in os.fsdecode(word) for word in words):
            _on_start(rest[0][0], words)
        return start(words, *rest)

    _posixsubprocess.fork_exec = start_noted


def begin_files(folder, changed=None):
    """Notes nothing for None. `changed`: as in `protocol.CatalogRequest`."""
    global _below, _root
    _below = os.path.join(folder, "") if folder else None
    _root = _below or ""
    if folder:
        shared_files.begin(folder, changed)
        absent_variables.begin(_relative)
        lookups.begin(_relative, shared_files.place_of_looked_at, _note_shared)
    if folder and not any(isinstance(finder, _LastFinder) for finder in sys.meta_path):
        sys.meta_path.append(_LastFinder())


def end_files():
    """Returns the opened files, relative to the folder."""
    global _below
    folder, _below = _below, None
    if folder is None:
        return []
    absent_variables.end()
    lookups.end()
    _note_files_of_the_home()
    inside = {path for path in _opened if path.startswith(folder)}
    read = {path for path in inside if os.path.isfile(path)}
    _missing.update(path[len(folder) :] for path in inside - read if not os.path.exists(path))
    return sorted(path[len(folder) :] for path in read)


def _note_files_of_the_home():
    """Notes files that the program looked for in its home folder, and that only the user's has."""
    try:
        users = pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:  # a container may run as somebody without a name
        return
    for own in own_folder.entered:
        home = os.path.join(own, "home", "")
        looked_for = (path for path in _opened | lookups.looked_for if path.startswith(home))
        absent = sorted(path[len(home) :] for path in looked_for if not os.path.lexists(path))
        names = [name for name in absent if os.path.exists(os.path.join(users, name))]
        for name in names:
            if not any(other.startswith(f"{name}/") for other in names):
                add_caveat(
                    f"a program looked for ~/{name}: your home folder has it, programs get an empty one"
                )


def missing():
    """Lists files and modules below the folder that were looked for and not there: `src/pkg/generated`."""
    return sorted(_missing)


class _LastFinder:
    """Notes the modules that no other finder has."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if _below is not None:
            end = name.rpartition(".")[2]
            places = [os.path.abspath(os.path.join(folder, end)) for folder in path or sys.path]
            _missing.update(place[len(_below) :] for place in places if place.startswith(_below))
            for place in places:
                lookups.note_module(place)


def begin_stages(folder):
    """Lists what is opened outside of the toolchain in the file `opened`, one line of JSON each: ["r", path]
    for what is read and was not written before, ["w", path] for such a path that is written later.
    """
    global _stages
    _stages = os.open(os.path.join(folder, protocol.OPENED), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    _seen_by_stages.clear()


def end_stages():
    global _stages
    descriptor, _stages = _stages, None
    if descriptor is None:
        return False
    is_any = os.fstat(descriptor).st_size > 0
    os.close(descriptor)
    return is_any


def _on_stage_event(event, arguments):
    if event == "os.rename":
        _list("w", arguments[1])
    elif event == "open" and not isinstance(arguments[0], int) and arguments[0] is not None:
        frame = sys._getframe(2)
        by = frame.f_code.co_filename
        above = frame.f_back.f_code.co_filename if frame.f_back is not None else ""
        # a module that is imported is known by `outside`; what irdiff keeps is no input of a stage
        if not by.startswith(WORKER) and not (by.startswith(_IMPORT) and above.startswith(_IMPORT)):
            _list("w" if arguments[2] & _WRITING else "r", arguments[0])


def _list(kind, path):
    path = os.path.abspath(os.fsdecode(path))
    is_new = ("w", path) not in _seen_by_stages and (kind, path) not in _seen_by_stages
    is_input = kind == "r" or ("r", path) in _seen_by_stages
    _seen_by_stages.add((kind, path))
    is_outside = not path.startswith(_TRITON) and not is_standard(path)
    if _stages is not None and is_new and is_input and is_outside:
        os.write(_stages, json.dumps([kind, path]).encode() + b"\n")


def caveat(words, *, is_compared=True):
    """Notes what only a GPU can answer, or what irdiff cannot see, with the running line of the repository.
    `is_compared=False`: the launch was not compared, which a report says at its top.

    Questions of Inductor belong to no line. What was not compared is said without a line, too: a thread may
    run no line of the repository.
    """
    if listener is not None:
        listener(words)
        return
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and _INDUCTOR not in frame.f_code.co_filename:
        if path := _relative(frame.f_code.co_filename):
            add_caveat(words, path, frame.f_lineno, is_compared=is_compared)
            return
        frame = frame.f_back
    if frame is None and not is_compared:
        add_caveat(words, is_compared=False)


def value_read(words="reads a value after a launch: no kernel computed it, a GPU may give another"):
    """Notes that a program reads a kernel's result, unless only an assertion reads it."""
    if has_launched and not is_checked():
        caveat(words)


def is_checked():
    return listener is not None and pytest_assertions.in_one()


def add_caveat(words, path="", line=0, *, is_compared=True):
    _caveats[path, line, words] = is_compared


def caveats(*, is_compared=True):
    return [caveat for caveat, is_that in _caveats.items() if is_that == is_compared]


def _on_event(event, arguments):
    if _stages is not None:
        _on_stage_event(event, arguments)
    if _below is None or event not in _LOOKED_AT:  # `sys._getframe` is an event, too
        return
    is_program = not sys._getframe(1).f_code.co_filename.startswith(_WORKER_CODE)
    if event == "open":
        if isinstance(arguments[0], (str, bytes, os.PathLike)):
            path = os.path.abspath(os.fsdecode(arguments[0]))
            _opened.add(path)
            if is_program:
                _on_open(path, arguments[2])
    elif not is_program:
        return
    elif event in _LOOKUPS:
        lookups.note(arguments[0], sys._getframe(1))
    elif event in _CHANGES:
        _on_change(event, arguments)
    elif event in _FORKS:
        caveat(CHILD, is_compared=False)
    elif event == "os.system":
        _on_start(None, arguments[0])
    elif event in _STARTS:
        _on_start(*arguments[:2])


def _on_start(program, words):
    """words: as for `started_programs.may_launch`."""
    name = started_programs.may_launch(program, words) if _below is not None else None
    if name:
        caveat(f"starts {name}: {NOT_FOLLOWED}", is_compared=False)


def _on_open(path, flags):
    is_written = isinstance(flags, int) and flags & _WRITING
    _note_shared(shared_files.place_of_changed(path) if is_written else shared_files.place_of_read(path))


def _on_change(event, arguments):
    path = arguments[_CHANGES[event]]
    is_relative_to_a_folder = event in _AT_FOLDERS and arguments[-1] not in (-1, None)
    if isinstance(path, int) or is_relative_to_a_folder or path in (":memory:", ""):
        return
    path = os.path.abspath(os.fsdecode(path))
    if event not in _IF_THERE or os.path.lexists(path) is _IF_THERE[event]:
        _note_shared(shared_files.place_of_changed(path))


def _note_shared(place):
    if place:
        words = f"uses {place}, which both sides and other runs share: what depends on it was not compared"
        caveat(words, is_compared=False)


_WORKER_CODE = (os.path.join(WORKER, "capture", ""), os.path.join(WORKER, "record", ""))
"""It starts nothing for a program, and opens workloads alone."""
_CHANGES = {
    **dict.fromkeys(
        ("os.mkdir", "os.remove", "os.rmdir", "os.truncate", "shutil.rmtree", "sqlite3.connect"), 0
    ),
    **dict.fromkeys(("os.rename", "os.link", "os.symlink"), 1),
}
"""{event: which of its arguments is the changed path}"""
_AT_FOLDERS = frozenset({"os.mkdir", "os.remove", "os.rmdir"})
"""Their last argument is a descriptor of the folder that a path is relative to."""
_IF_THERE = {"os.mkdir": False, "os.remove": True, "os.rmdir": True, "shutil.rmtree": True}
"""{event: whether the path exists if the event changes something}"""
_TRACKER = "multiprocessing.resource_tracker"
"""A process of `multiprocessing` that launches nothing."""
_STARTS = frozenset({"subprocess.Popen", "os.posix_spawn", "os.exec"})
"""Their first arguments are the program and its words."""
_FORKS = frozenset({"os.fork", "os.forkpty"})
_LOOKUPS = frozenset({"os.listdir", "os.scandir", "ctypes.dlopen"})
_LOOKED_AT = frozenset({"open", "os.system", *_LOOKUPS, *_CHANGES, *_FORKS, *_STARTS})
NOT_FOLLOWED = "what that launches was not compared"
CHILD = f"starts {started_programs.PYTHON}: {NOT_FOLLOWED}"
