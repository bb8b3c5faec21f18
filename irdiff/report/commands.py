"""Commands that a report prints to be copied: every word is quoted for a shell.

A run records the words that its user typed, which may be anybody's. They are sorted here and never executed.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from irdiff.backends import ASSEMBLERS
from irdiff.compare import cases
from irdiff.model import Case, Revision, Run, Verdict
from irdiff.report import escape
from irdiff.resolve import remote_repositories
from irdiff.run.run_list import LAST

UNNAMED = "RUN"
"""For a report whose writer does not know how the reader names the run."""


def command(*words: str) -> str:
    """Invisible characters of a word are spelled out, so nobody pastes them unseen."""
    return shlex.join(["irdiff", *(escape.clean(word) for word in words)])


def explain(call: str, name: str) -> str:
    return command("explain", call, name)


def diff(call: str, name: str, *options: str) -> str:
    return command("diff", call, name, *options)


def story(call: str, name: str, case: Case) -> list[str]:
    return [explain(call, name), *([diff(call, name)] if has_lines(case) else [])]


def has_lines(case: Case) -> bool:
    """A side without code leaves one text at most."""
    return case.verdict in (Verdict.CHANGED, Verdict.IR_ONLY) and not cases.not_compared(case)


def page(call: str) -> str:
    return command("report", call, "--html", "report.html")


def again(run: Run, case: Case) -> str | None:
    """Compares one case of the run again, on any machine that can have both sides. None if a side was a
    working tree, or the run's command is unknown.
    """
    replay = replayed(run.command[1:])
    if replay is None:
        return None
    sides: tuple[str, ...] | None = (*replay.sides, "--triton", run.head.spec)
    if not replay.is_ir:
        sides = _named(run.base, run.head)
    if sides is None:
        return None
    return command("compare", *sides, *replay.kept, "--case", case.id, "--target", case.target)


def _named(base: Revision, head: Revision) -> tuple[str, ...] | None:
    """Returns None if a side cannot be named: compilers alone do not say which kernels they compiled."""
    kernels = [_kernels(revision) for revision in (base, head)]
    compilers = (base.spec, head.spec)
    if base.revision == head.revision and base.spec != head.spec:
        # the kernels of one revision, compiled by two: only one of the sides can name the revision
        return (base.spec, kernels[1], "--triton", head.spec) if kernels[1] else compilers
    if not (base.revision or head.revision):
        return compilers
    if not all(kernels):
        return None
    chosen = ("--triton", head.spec) if base.spec == head.spec else ()
    return (*kernels, *chosen)


def _kernels(revision: Revision) -> str:
    """Returns the commit, which stays when branches move, or the address of a remote repository."""
    name, _, commit = revision.revision.rpartition(" ")
    if name == "working tree":
        return ""
    return name if remote_repositories.parse(name) else commit


# what of a recorded command line must be typed again, so that the same is compared in the same way


KEPT = {
    "--repo", "--targets-dir", "--corpus", "--pack", "--with", "--program", "--configs", "--option",
    "--from", *(f"--{name}" for name in ASSEMBLERS), "--stages", "--tests", "--sample",
}  # fmt: skip
"""Options with a value that choose the cases, their compilers, and the evidence of the verdict."""
KEPT_FLAGS = {"--ir"}
DROPPED = {
    "--case", "--tier", "--target", "--shard", "--triton", "--python", "--out", "--baseline", "--limit",
    "--json", "--markdown", "--html", "--cache", "--store-mode", "--cluster", "--jobs", "-j", "--timeout",
    "--memory", "--tests-changed", "--tests-unchanged",
}  # fmt: skip
"""Options with a value that the report replaces (case, target and compiler), or that depend on the
machine.
"""
DROPPED_FLAGS = {
    "--exercised", "--no-build", "--bump", "--no-cache", "--recheck", "--no-recheck", "--attribute",
    "--no-attribute", "--quiet", "-q", "--exit-code",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class ReplayCommand:
    sides: tuple[str, ...]
    kept: tuple[str, ...]

    @property
    def is_ir(self) -> bool:
        return "--ir" in self.kept


def replayed(words: Sequence[str]) -> ReplayCommand | None:
    """Returns None if a word is unknown, or means something else when typed again."""
    sides, kept = list[str](), list[str]()
    left = iter(words)
    for word in left:
        name, equals, value = word.partition("=") if word.startswith("--") else (word, "", "")
        if name in KEPT | DROPPED:
            value = value if equals else next(left, "")
            if name == "--from" and value.partition(":")[0] == LAST:
                return None
            kept += [name, value] if name in KEPT else []
        elif name in KEPT_FLAGS | DROPPED_FLAGS:
            kept += [name] if name in KEPT_FLAGS else []
        elif word == "--":
            sides += left
        elif not word.startswith("-") or word == "-":
            sides.append(word)
        elif not (word.startswith("-j") and word[2:].isdigit()):
            return None
    return ReplayCommand(sides=tuple(sides), kept=tuple(kept))
