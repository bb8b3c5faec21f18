"""A program of a repository as its corpus: `irdiff compare main HEAD --program "bench/run.py --small"`.

The program is run at each revision, in the tree of that revision, as if there were a GPU. Whatever it
launches is compared: what the repository computes of arguments, grids and options before a launch counts too.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path, PurePosixPath

from irdiff.config import Config
from irdiff.errors import UsageError
from irdiff.resolve import kernel_repository
from irdiff.resolve.corpus import Corpus
from irdiff.resolve.kernel_repository import Plan
from irdiff.resolve.toolchains import repository
from irdiff.resolve.toolchains.repository import Snapshot
from irdiff.store import key_of

FAMILY = "program"
_WORKLOAD = '''"""Runs a program of the repository."""

from irdiff_corpus import program

LAUNCHES = {{{label!r}: program({words})}}
'''


def corpus_of(snap: Snapshot, plan: Plan, command: str, config: Config) -> Corpus:
    """A corpus of one workload, which runs the program. Raises UsageError where the revision lacks it."""
    words = words_of(command)
    files = {entry.path for entry in repository.entries(snap, config)}
    if words[0] != "-m" and str(PurePosixPath(words[0])) not in files:
        raise UsageError(
            f"{snap.label} has no file {words[0]}",
            hint="name a program of the repository by its path from the root, or as -m MODULE",
        )
    tree = kernel_repository.exported(snap, config)
    root = kernel_repository.copied(tree)
    name, label = name_of(words)
    made = root.parent / "workloads" / FAMILY
    made.mkdir(parents=True)
    text = _WORKLOAD.format(label=label, words=", ".join(map(repr, words)))
    (made / f"{name}.py").write_text(text, encoding="utf-8")
    return Corpus(
        root=root,
        workloads=(f"{FAMILY}/{name}",),
        digest=key_of("program/2", tree.parent.name, words, plan.imports),
        folder="../workloads",
        imports=(*plan.imports, "."),
        kept=tree,
        files=kernel_repository.contents(snap, config),
    )


def plan_without_file(snap: Snapshot, config: Config) -> Plan:
    """What holds for a repository that has no `irdiff.toml`: packages lie in its root, or in `src`."""
    has_src = any(entry.path.startswith("src/") for entry in repository.entries(snap, config))
    folders = ("src", ".") if has_src else (".",)
    return Plan(**{"workloads": FAMILY, "import": folders})  # type: ignore[arg-type]


def words_of(command: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"--program {command!r}: {error}", hint="quote it as a shell would") from error
    if not words or words == ["-m"] or Path(words[0]).is_absolute() or ".." in PurePosixPath(words[0]).parts:
        raise UsageError(
            f"--program {command!r} names no program of the repository",
            hint="as in --program 'bench/run.py --small', or --program '-m package.bench'",
        )
    return words_of(shlex.join(words[1:])) if words[0] in ("python", "python3") else words


def name_of(words: list[str]) -> tuple[str, str]:
    """(workload, label): `run` and `small` of `bench/run.py --small`."""
    is_module = words[0] == "-m"
    named, arguments = (words[1], words[2:]) if is_module else (PurePosixPath(words[0]).stem, words[1:])
    label = re.sub(r"[^A-Za-z0-9._]+", "-", " ".join(arguments)).strip("-.")[:60]
    return re.sub(r"\W", "_", named).strip("_") or "program", label or "run"
