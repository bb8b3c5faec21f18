"""Which files differ between two revisions of a repository of kernels, and whether code could follow one.

Read from the trees alone, before anything is installed. Every file counts, whatever its name: a workload may
import it, open it, or read a pin in it. Outside of the folders that `irdiff.toml` names, only documents,
licenses and what belongs to git, editors and services do not. That nothing else differs is what is said then;
no kernel is called unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

from irdiff.config import Config
from irdiff.model import Edited, EditedFile, FileChange
from irdiff.resolve import kernel_repository
from irdiff.resolve.kernel_repository import Plan
from irdiff.resolve.toolchains import repository
from irdiff.resolve.toolchains.repository import Snapshot

_DOCUMENTS = (".md", ".rst", ".pdf", ".png", ".svg", ".jpg", ".gif")
_LEGAL = frozenset({"LICENSE", "NOTICE", "CODEOWNERS"})
_SERVICES = frozenset({".github", ".gitignore", ".gitlab-ci.yml", ".pre-commit-config.yaml", ".vscode"})
"""At the root. Any other hidden name may be a file that a kernel reads: `.tuned.json`."""


def between(base: Snapshot, head: Snapshot, config: Config) -> Edited | None:
    """None where not both are repositories of kernels. Raises UsageError where git cannot read them."""
    if not all(kernel_repository.has_plan(snap, config) for snap in (base, head)):
        return None
    plans = [kernel_repository.plan_of(snap, config) for snap in (base, head)]
    trees = [contents(snap, config) for snap in (base, head)]
    paths = sorted({path for path, _ in trees[0].items() ^ trees[1].items()})
    files = tuple(_file(path, plans, in_base=path in trees[0], in_head=path in trees[1]) for path in paths)
    return Edited(files=files, of_kernels=True, identical=not any(file.counts for file in files))


def contents(snap: Snapshot, config: Config) -> dict[str, tuple[str, str]]:
    """Mode and blob of every file."""
    return {entry.path: (entry.mode, entry.blob) for entry in repository.entries(snap, config)}


def _file(path: str, plans: Sequence[Plan], *, in_base: bool, in_head: bool) -> EditedFile:
    change = FileChange.ADDED if not in_base else FileChange.CHANGED if in_head else FileChange.REMOVED
    word = _beside(PurePosixPath(path), plans)
    return EditedFile(path=path, change=change, feeds=(word or "code, data or a pin",), counts=word is None)


def _beside(path: PurePosixPath, plans: Sequence[Plan]) -> str | None:
    """What a file is for that no kernel is made of."""
    named = {name for plan in plans for name in (plan.workloads, plan.pin, *plan.imports)} - {".", None}
    named |= {word for plan in plans for command in plan.program for word in command.split()}
    if named & {str(path), *map(str, path.parents)}:
        return None  # whatever it is called, `irdiff.toml` names it or its folder
    if path.parts[0] in _SERVICES:
        return "other files"
    is_document = path.name.lower().endswith(_DOCUMENTS) or path.name.partition(".")[0] in _LEGAL
    return "documents" if is_document else None
