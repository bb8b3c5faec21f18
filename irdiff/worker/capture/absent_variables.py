"""Notes the environment variables that lines of the repository look for, and that the program does not have.

The user's shell may have them. Only irdiff's own process knows that, and compares the names: what a worker
finds does not depend on the shell. Packages look for many variables all the time, so theirs do not count.
"""

from __future__ import annotations

import collections.abc
import os
import sys
import types
import typing

_PYTHONS_OWN = frozenset(
    function.__code__.co_filename for function in (os.getenv, collections.abc.Mapping.get)
)
_relative: typing.Any = None
_looked_for: set = set()


class _Noting(type(os.environ)):  # type: ignore[misc]
    """The class of `os.environ` for a while: stages notice a change of the class in `os`."""

    def __getitem__(self, name):
        """`get`, `in`, `setdefault`, `pop` and `os.getenv` call it, too."""
        try:
            return super().__getitem__(name)
        except KeyError:
            frame: types.FrameType | None = sys._getframe(1)
            while frame is not None and frame.f_code.co_filename in _PYTHONS_OWN:
                frame = frame.f_back
            if frame is not None and (path := _relative(frame.f_code.co_filename)):
                _looked_for.add((path, frame.f_lineno, os.fsdecode(name)))
            raise


_environments: tuple = (os.environ, os.environb)
_class = type(os.environ)


def begin(relative):
    """relative: returns the path of a file of the repository from its root; empty for another file."""
    global _relative
    _relative = relative
    for environment in _environments:
        environment.__class__ = _Noting


def end():
    for environment in _environments:
        environment.__class__ = _class


def looked_for():
    """Lists (path, line, name of the variable)."""
    return sorted(_looked_for)
