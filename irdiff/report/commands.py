"""Commands that a report prints, to be copied as they stand: every word is quoted for a shell."""

from __future__ import annotations

import shlex

from irdiff.compare import cases
from irdiff.model import Case, Revision, Run, Verdict
from irdiff.report import escape
from irdiff.resolve import remote_repositories
from irdiff.run import replay_command

UNNAMED = "RUN"
"""What a run is called where the writer of a report does not know how its reader reaches it."""


def command(*words: str) -> str:
    """`irdiff` with words, quoted. What cannot be seen in a word is spelled out: nobody pastes it unseen."""
    return shlex.join(["irdiff", *(escape.clean(word) for word in words)])


def explain(call: str, name: str) -> str:
    """The whole story of a group or a case of the run that `call` names."""
    return command("explain", call, name)


def diff(call: str, name: str, *options: str) -> str:
    return command("diff", call, name, *options)


def story(call: str, name: str, case: Case) -> list[str]:
    """Commands that show more of a group or a case; `case` is the one that `name` stands for."""
    return [explain(call, name), *([diff(call, name)] if has_lines(case) else [])]


def has_lines(case: Case) -> bool:
    """Whether `irdiff diff` has two texts to show: where a side gave no code, it has one at most."""
    return case.verdict in (Verdict.CHANGED, Verdict.ABSORBED) and not cases.not_compared(case)


def page(call: str) -> str:
    return command("report", call, "--html", "report.html")


def again(run: Run, case: Case) -> str | None:
    """Compares one case of the run again, on any machine that can have both sides, as the run compared it.

    None where a side was a working tree, or the run's command is not known: no words lead back to these.
    """
    replayed = replay_command.read(run.command[1:])
    if replayed is None:
        return None
    sides: tuple[str, ...] | None = (*replayed.sides, "--triton", run.head.spec)
    if not replayed.is_ir:
        sides = _named(run.base, run.head)
    if sides is None:
        return None
    return command("compare", *sides, *replayed.kept, "--case", case.id, "--target", case.target)


def _named(base: Revision, head: Revision) -> tuple[str, ...] | None:
    """What `irdiff compare` takes for both sides: compilers alone do not say which kernels they compiled."""
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
    """The commit, which stays when branches move; of a repository elsewhere, also where that is."""
    name, _, commit = revision.revision.rpartition(" ")
    if name == "working tree":
        return ""
    return name if remote_repositories.parse(name) else commit
