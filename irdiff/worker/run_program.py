"""Runs a program inside a worker, while its launches are captured."""

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
"""pytest's exit code if it ran all collected tests, and some failed."""


class EndedEarly(Exception):
    """The program did not come to its end; its earlier launches are captured."""


def run(*words):
    """Runs `script.py arguments…` or `-m module arguments…`, relative to the current folder. Raises
    EndedEarly unless it succeeds.
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
    """Runs as `python script.py arguments…` or `python -m module arguments…` would, including the end of the
    interpreter: it waits for threads and executors, and calls the functions registered for exit.
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
        functions[:] = [registered for registered in functions if registered[0] != function]

    with unittest.mock.patch.multiple(atexit, register=register, unregister=unregister):
        try:
            yield
        finally:
            _wait_for_threads()
            while functions:
                function, args, kwargs = functions.pop()
                _call_to_the_end(function, *args, **kwargs)


def _wait_for_threads():
    """Waits as `threading._shutdown` does: for executors first, then for each thread that is no daemon."""
    for function in reversed(list(getattr(threading, "_threading_atexits", ()))):
        _call_to_the_end(function)
    # this process goes on: what Python closes for good at its end is open again
    concurrent.futures.thread._shutdown = False
    own = threading.current_thread()
    while waiting := [thread for thread in threading.enumerate() if thread is not own and not thread.daemon]:
        waiting[0].join()


def _call_to_the_end(function, *args, **kwargs):
    """Prints what a function raises at exit, and continues, as Python does."""
    try:
        function(*args, **kwargs)
    except Exception:
        traceback.print_exc()
