"""Defines an exception for each kind of failure, with the exit code that it ends with.

A kernel that does not compile is a finding (a value in the run), never an exception. An exception
means that irdiff itself cannot go on, and says what happened, where, and what to type next.
"""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """The exit codes of every command; documented in the README."""

    DONE = 0
    ANSWER_IS_NO = 1
    USAGE = 2
    TOOLCHAIN = 3
    NOT_COMPARED = 4
    BUG = 70
    INTERRUPTED = 130


class BuildInterrupted(KeyboardInterrupt):
    """A native build was interrupted; its text says what is kept of it."""


class IrdiffError(Exception):
    """A failure that a user can act on: `what` happened, the `hint` says what to do next."""

    exit_code = ExitCode.USAGE

    def __init__(self, what: str, *, hint: str = "", log_path: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint
        self.log_path = log_path

    def __str__(self) -> str:
        lines = [self.what]
        if self.hint:
            lines.append(f"  next: {self.hint}")
        if self.log_path:
            lines.append(f"  log: {self.log_path}")
        return "\n".join(lines)


class UsageError(IrdiffError):
    """The command line, a configuration file, a target file or a policy is wrong."""


class CorpusError(IrdiffError):
    """The corpus as a whole cannot be used (one broken workload is a finding instead)."""


class ToolchainError(IrdiffError):
    """A side's toolchain could not be resolved, installed, built or identified."""

    exit_code = ExitCode.TOOLCHAIN


class StoreError(IrdiffError):
    """The store cannot be read or written (disk full, read-only, no permission)."""

    exit_code = ExitCode.NOT_COMPARED


class NothingComparedError(IrdiffError):
    """A comparison found no case that it could compare."""

    exit_code = ExitCode.NOT_COMPARED


class RunFolderError(IrdiffError):
    """A run folder is missing, damaged, hostile, or of another schema version."""


class NormalizeError(IrdiffError):
    """A text cannot be brought into canonical form, for example because it is not of the stated IR."""

    exit_code = ExitCode.NOT_COMPARED
