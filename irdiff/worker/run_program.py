"""A program run inside a worker, while its launches are captured."""

from __future__ import annotations

import atexit
import concurrent.futures.thread
import contextlib
import os
import runpy
import sys
import threading
import traceback
import unittest.mock

_TESTS_FAILED = 1
"""pytest's exit code where it ran all tests that it collected, and some failed."""


class EndedEarly(Exception):
    """The program did not come to its end; what it launched before is captured."""


def run(*words):
    """Runs `script.py arguments…` or `-m module arguments…`, relative to the current folder.

    Raises EndedEarly for whatever ends it but a success.
    """
    before = sys.argv[:], sys.path[:]
    try:
        run_as_main(*words)
    except SystemExit as error:
        if words[:2] == ("-m", "pytest") and error.code == _TESTS_FAILED:
            raise EndedEarly("pytest ended with 1: tests failed") from error
        if error.code not in (None, 0):
            raise EndedEarly(f"the program ended with {error.code}") from error
    except Exception as error:
        raise EndedEarly(f"{type(error).__name__}: {error}") from error
    finally:
        sys.argv[:], sys.path[:] = before


def run_as_main(*words):
    """As `python script.py arguments…` or `python -m module arguments…` would, to the end of the
    interpreter: it waits for threads and executors, and calls what the program has registered for its exit.
    """
    is_module = words[0] == "-m"
    name, *arguments = words[1:] if is_module else words
    sys.argv[:] = [name, *arguments]
    with _ending_as_python_does():
        if is_module:
            sys.path.insert(0, os.getcwd())
            runpy.run_module(name, run_name="__main__", alter_sys=True)
        else:
            sys.path.insert(0, os.path.dirname(os.path.abspath(name)))
            runpy.run_path(name, run_name="__main__")


@contextlib.contextmanager
def _ending_as_python_does():
    functions: list = []

    def register(function, *args, **kwargs):
        functions.append((function, args, kwargs))
        return function

    def unregister(function):
        functions[:] = [row for row in functions if row[0] != function]

    with unittest.mock.patch.multiple(atexit, register=register, unregister=unregister):
        try:
            yield
        finally:
            _wait_for_threads()
            while functions:
                function, args, kwargs = functions.pop()
                _call_to_the_end(function, *args, **kwargs)


def _wait_for_threads():
    """As `threading._shutdown` does: executors first, then each thread that is no daemon."""
    for function in reversed(list(getattr(threading, "_threading_atexits", ()))):
        _call_to_the_end(function)
    # this process goes on: what Python closes for good at its end is open again
    concurrent.futures.thread._shutdown = False
    own = threading.current_thread()
    while waiting := [row for row in threading.enumerate() if row is not own and not row.daemon]:
        waiting[0].join()


def _call_to_the_end(function, *args, **kwargs):
    """Python prints what a function raises at exit, and goes on."""
    try:
        function(*args, **kwargs)
    except Exception:
        traceback.print_exc()
