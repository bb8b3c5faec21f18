"""What a capture depended on: every file and folder that was looked at while it ran.

An audit hook sees each file that is opened (source, bytecode, data), each library that is loaded and each
folder that is listed, which is how Python looks for modules; questions whether a path exists, or where a link
leads, are seen by standing in front of `os.stat`, `os.lstat`, `os.access` and `os.readlink`. What was not
there counts too: a file that appears later may change what is captured. So does each folder of the module
search path, since a module found earlier there takes the place of another. Of a path that was only asked for,
its kind and size count, not its times.

Paths keep their `..`: behind a link it leads elsewhere than its text says, and a repository's corpus is a
folder of links.

Left out is what other digests hold: Triton itself, the standard library, this package, and the packages of a
pack. Where a program was started, a network or a database asked, or a file named relative to an open folder,
nothing is known, and the capture is not used again.
"""

from __future__ import annotations

import importlib.util
import os
import stat
import sys
import sysconfig

import triton

_KERNEL_FILE_SYSTEMS = ("/proc/", "/sys/", "/dev/")
_FILES_IN_MEMORY = "/dev/shm/"
_UNKNOWABLE = frozenset(
    {"subprocess.Popen", "os.system", "os.posix_spawn", "os.fork", "socket.connect", "socket.getaddrinfo"}
    | {"sqlite3.connect"}
)
_stat, _open, _readlink = os.stat, os.open, os.readlink
_NOT_FOLLOWING = frozenset({os.lstat, os.readlink})


class _Seen:
    def __init__(self):
        self.watching = False
        self.files = {}
        """{path: its state when it was first opened, None where it was absent}"""
        self.folders = set()
        self.asked = {}
        """{path: what was said of it}"""
        self.links = {}
        """{path that was asked about itself: where it leads, None where it is no link}"""
        self.unknowable = set()
        self.left_out = ()
        self.standard_library = ()


_seen = _Seen()


def watch(packages=()):
    """From now on, in this process and in those forked from it. packages: more folders that are left out."""
    own = [os.path.dirname(os.path.abspath(path)) for path in (__file__, triton.__file__)]
    standard = sysconfig.get_paths()["stdlib"]
    _seen.left_out = tuple(os.path.join(folder, "") for folder in [*own, *packages])
    _seen.standard_library = tuple(os.path.join(path, "") for path in {standard, os.path.realpath(standard)})
    _seen.watching = True
    for ask in (os.stat, os.lstat, os.access, os.readlink):
        setattr(os, ask.__name__, _asking(ask))
    os.open = _open_of_folder
    sys.addaudithook(_hook)


def begin():
    """A capture begins: what was done before it, to make ready for any, is known by other digests."""
    _seen.unknowable.clear()


def pause():
    """Stops watching: what follows depends only on what was seen before."""
    _seen.watching = False


def report():
    """Returns what was seen until now, as JSON, and notes nothing more."""
    pause()
    for entry in sys.path:
        _note_folder(entry or ".")
    return {
        "files": _seen.files,
        "folders": {path: names_in(path) for path in sorted(_seen.folders)},
        "asked": {path: kind for path, kind in _seen.asked.items() if path not in _seen.files},
        "links": _seen.links,
        "unknowable": sorted(_seen.unknowable),
    }


def state_of(path):
    """Changes whenever the content of a file does; None where there is none. See `irdiff.capture.disk`."""
    try:
        found = _stat(path)
    except (OSError, ValueError):
        return None
    return f"{found.st_dev}:{found.st_ino}:{found.st_size}:{found.st_mtime_ns}:{found.st_ctime_ns}"


def kind_of(path):
    """What is to be had of a path by asking for it, but for times. As `irdiff.capture.disk` has it."""
    try:
        found = _stat(path)
    except (OSError, ValueError):
        return "absent"
    kind = f"{found.st_mode >> 12:o}"
    return f"{kind} {found.st_size}" if stat.S_ISREG(found.st_mode) else kind


def target_of(path):
    """Where a link leads; None for what is none. As `irdiff.capture.disk` has it."""
    try:
        return _readlink(path)
    except (OSError, ValueError):
        return None


def names_in(path):
    """What lies in a folder, as text; None where there is none. As `irdiff.capture.disk` has it."""
    try:
        return "/".join(sorted(name for name in os.listdir(path) if name != "__pycache__"))
    except OSError:
        return None


def _hook(event, arguments):
    if not _seen.watching:
        return
    if event == "open":
        _note_file(arguments[0], arguments[2])
    elif event in ("os.listdir", "os.scandir"):
        _note_folder(arguments[0] if arguments[0] is not None else ".")
    elif event == "ctypes.dlopen":
        _note_file(arguments[0], 0)
    elif event == "import" and arguments[1] is not None:  # an extension module; others are opened
        _note_file(arguments[1], 0)
    elif event in _UNKNOWABLE:
        _seen.unknowable.add(event)


def _note_file(name, flags):
    only_written = isinstance(flags, int) and flags & os.O_WRONLY
    if not isinstance(name, (str, bytes)) or only_written:
        return
    path = _absolute(name)
    if path in _seen.files or _is_left_out(path):
        return
    _seen.files[path] = state_of(path)
    if path.endswith(".pyc"):  # it is taken as long as its source looks as it did
        try:
            _note_file(importlib.util.source_from_cache(path), 0)
        except ValueError:  # bytecode of no source
            pass


def _note_folder(name):
    if isinstance(name, int):
        name = _readlink(f"/proc/self/fd/{name}")
    if isinstance(name, (str, bytes)):
        path = _absolute(name)
        if not _is_left_out(os.path.join(path, "")):
            _seen.folders.add(path)


def _asking(ask):
    def asked(path, *args, **kwargs):
        if _seen.watching and kwargs.get("dir_fd") is not None:
            _seen.unknowable.add("dir_fd")
        elif _seen.watching and isinstance(path, (str, bytes, os.PathLike)):
            place = _absolute(path)
            if place not in _seen.asked and not _is_left_out(place):
                _seen.asked[place] = kind_of(place)
            follows = ask not in _NOT_FOLLOWING and kwargs.get("follow_symlinks", True)
            if not follows and place not in _seen.links and not _is_left_out(place):
                _seen.links[place] = target_of(place)
        return ask(path, *args, **kwargs)

    return asked


def _open_of_folder(*args, **kwargs):
    """`os.open`: the audit hook is not told the folder that a name is relative to."""
    if _seen.watching and kwargs.get("dir_fd") is not None:
        _seen.unknowable.add("dir_fd")
    return _open(*args, **kwargs)


def _absolute(path):
    text = os.fsdecode(path)
    if not os.path.isabs(text):
        text = os.path.join(os.getcwd(), text)
    return text if ".." in text.split(os.sep) else os.path.normpath(text)


def _is_left_out(path):
    if ".." in path.split(os.sep):
        return False
    if path.startswith(_seen.left_out):
        return True
    if path.startswith(_KERNEL_FILE_SYSTEMS) and not path.startswith(_FILES_IN_MEMORY):
        return True
    return any(
        path.startswith(folder) and not path[len(folder) :].startswith(("site-packages/", "dist-packages/"))
        for folder in _seen.standard_library
    )
