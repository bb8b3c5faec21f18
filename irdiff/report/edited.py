"""What differs between two revisions and what it feeds, in sentences: said before anything else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from irdiff.model import Edited, EditedFile, Run
from irdiff.words import counted, first_few

_SHOWN = 4
NATIVE = "native code"


def same_compiler(run: Run) -> bool:
    """Whether both sides have the same compiler, or the same code, and so nothing was compared.

    With `--no-cache` cases are compared all the same: then they are what there is to say.
    """
    return run.edited is not None and run.edited.identical and not run.cases


def headline(edited: Edited) -> str:
    """The first line of a report on revisions of which nothing can follow."""
    looked_at = f"({counted(len(edited.files), 'file')} looked at)"
    if edited.of_kernels:
        return f"no code, data or pin differs: nothing was compared {looked_at}"
    return f"identical compilers: nothing can change {looked_at}"


def sentence(run: Run) -> str:
    """What differs, and what that feeds; empty where `reach` says more."""
    if not run.edited or not run.edited.files or run.reach:
        return ""
    same = run.base.digest == run.head.digest and not run.edited.of_kernels and not run.edited.identical
    made = "; both sides have the same compiler all the same, byte by byte" if same else ""
    return differing(run.edited) + made


def differing(edited: Edited) -> str:
    """`14 files differ: native code (1: lib/Analysis/AxisInfo.cpp), tests (11), documents (2)`."""
    counting = [file for file in edited.files if file.counts]
    beside = [file for file in edited.files if not file.counts]
    parts = [f"{word} ({count}: {_names(counting, word)})" for word, count in _counted(counting)]
    parts += [f"{word} ({count})" for word, count in _counted(beside)]
    count = len(edited.files)
    return f"{counted(count, 'file')} {'differs' if count == 1 else 'differ'}: {', '.join(parts)}"


def consequence(edited: Edited) -> str:
    """What follows for what has to be made."""
    if edited.identical:
        return headline(edited)
    if edited.of_kernels:
        return ""
    if any(NATIVE in file.feeds for file in edited.files):
        return "native code differs: each side needs a native build of its own"
    return "only Python differs: both sides share one native build"


def _counted(files: Sequence[EditedFile]) -> list[tuple[str, int]]:
    """How many files feed each thing; one that feeds two counts for both."""
    return sorted(
        Counter(word for file in files for word in file.feeds).items(), key=lambda row: (-row[1], row[0])
    )


def _names(files: Sequence[EditedFile], word: str) -> str:
    paths = [file.path for file in files if word in file.feeds]
    return first_few(paths, _SHOWN)
