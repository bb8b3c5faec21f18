"""A program run inside a worker, while its launches are captured."""

from __future__ import annotations

import os
import runpy
import sys


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
        if error.code not in (None, 0):
            raise EndedEarly(f"the program ended with {error.code}") from error
    except Exception as error:
        raise EndedEarly(f"{type(error).__name__}: {error}") from error
    finally:
        sys.argv[:], sys.path[:] = before


def run_as_main(*words):
    """As `python script.py arguments…` or `python -m module arguments…` would."""
    is_module = words[0] == "-m"
    name, *arguments = words[1:] if is_module else words
    sys.argv[:] = [name, *arguments]
    if is_module:
        sys.path.insert(0, os.getcwd())
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    else:
        sys.path.insert(0, os.path.dirname(os.path.abspath(name)))
        runpy.run_path(name, run_name="__main__")
