"""Programs of a repository as its corpus: `program = "bench/run.py"` in `irdiff.toml`, or `--program`.

A program runs at each revision, once for each target, as if there were a GPU of that kind. All of its
launches are compared, so what the repository computes before a launch counts too.
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath

from irdiff import case_ids
from irdiff.config import Config
from irdiff.errors import UsageError
from irdiff.resolve import kernel_repository
from irdiff.resolve.corpus import Corpus
from irdiff.resolve.kernel_repository import Plan
from irdiff.resolve.toolchains import repository
from irdiff.resolve.toolchains.repository import Snapshot
from irdiff.store import key_of, sha256

FAMILY = case_ids.PROGRAMS
_WORKLOAD = '''"""Runs a program of the repository."""

from irdiff_corpus import program

LAUNCHES = {{
{entries}}}
'''


def corpus_of(
    snap: Snapshot, plan: Plan, commands: Sequence[str], config: Config, other: Snapshot | None = None
) -> Corpus:
    """Gives each command line a label.

    A program that the revision lacks is taken from the revision that it is compared with, or else from the
    working tree. Raises UsageError if none has it.
    """
    tree = kernel_repository.exported(snap, config)
    others = [kernel_repository.exported(other, config)] if other else []
    others += [snap.store.worktree] if snap.store.worktree else []
    root = kernel_repository.copied(tree)
    borrowed: dict[str, str] = {}
    every = [words_of(command) for command in commands]
    for words in every:
        if words[0] != "-m" and not (root / words[0]).is_file():
            program = next((other / words[0] for other in others if (other / words[0]).is_file()), None)
            if program is None:
                raise UsageError(
                    f"{snap.label} has no file {words[0]}",
                    hint="name a program of the repository by its path from the root, or as -m MODULE",
                )
            (root / words[0]).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(program, root / words[0])
            borrowed[words[0]] = sha256(program.read_bytes())
    calls_by_workload = named(every)
    workloads = root.parent / "workloads" / FAMILY
    workloads.mkdir(parents=True)
    for name, labels in calls_by_workload.items():
        calls = {label: ", ".join(map(repr, words)) for label, words in labels.items()}
        entries = "".join(f"    {label!r}: program({call}),\n" for label, call in calls.items())
        (workloads / f"{name}.py").write_text(_WORKLOAD.format(entries=entries), encoding="utf-8")
    return Corpus(
        root=root,
        workloads=tuple(f"{FAMILY}/{name}" for name in sorted(calls_by_workload)),
        digest=key_of("program/3", tree.parent.name, list(borrowed.values()), list(commands), plan.imports),
        folder="../workloads",
        imports=(*plan.imports, "."),
        kept=tree,
        files=kernel_repository.contents(snap, config),
        pointers=kernel_repository.pointers(tree),
        absent_submodules=kernel_repository.absent_submodules(snap, config),
        ignored=repository.ignored(snap.store),
        borrowed={
            f"{FAMILY}/{name}": words[0]
            for name, labels in calls_by_workload.items()
            for words in labels.values()
            if words[0] in borrowed
        },
    )


def plan_without_file(snap: Snapshot, config: Config) -> Plan:
    """Expects packages in the root of the repository, or in `src`."""
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
    if words[0] in ("python", "python3"):
        return words_of(shlex.join(words[1:]))
    return ["-m", *words] if words[0] == "pytest" else words


def packages_of(commands: Sequence[str]) -> tuple[str, ...]:
    """Returns packages that run the programs, such as pytest."""
    return ("pytest",) if any(words_of(command)[:2] == ["-m", "pytest"] for command in commands) else ()


def named(commands: Iterable[list[str]]) -> dict[str, dict[str, list[str]]]:
    """Returns {workload: {label: words}}: `run` and `small` of `bench/run.py --small`.

    Programs with the same file name get as much of their paths as distinguishes them; command lines with the
    same label get a digest. Raises UsageError if two programs cannot be distinguished.
    """
    every = list(commands)
    programs = dict.fromkeys(map(_place_of, every))
    places: dict[str, dict[str, list[str]]] = {}
    names = {place: _shortest(place, [other for other in programs if other != place]) for place in programs}
    if twice := {name for name, count in Counter(names.values()).items() if count > 1}:
        paths = ["/".join(place) for place, name in names.items() if name in twice]
        raise UsageError(
            f"the programs {', '.join(paths)} have one name, {', '.join(sorted(twice))}",
            hint="give one of the files another name",
        )
    labels = Counter(map(_label_of, dict.fromkeys(map(tuple, every))))
    for words in every:
        place, label = _label_of(words)
        if labels[place, label] > 1:
            label = f"{label}-{sha256(shlex.join(words).encode())[:8]}"
        places.setdefault(names[place], {})[label] = words
    return places


def _place_of(words: Sequence[str]) -> tuple[str, ...]:
    return ("-m", words[1]) if words[0] == "-m" else PurePosixPath(words[0]).with_suffix("").parts


def _shortest(place: tuple[str, ...], others: Iterable[tuple[str, ...]]) -> str:
    """Returns the shortest end of a path that no other has, as one word."""
    taken = [[_word(other[-count:]) for count in range(1, len(other) + 1)] for other in others]
    every = [_word(place[-count:]) for count in range(1, len(place) + 1)]
    return next((name for name in every if not any(name in names for names in taken)), every[-1])


def _word(parts: Sequence[str]) -> str:
    return re.sub(r"\W", "_", "_".join(parts)).strip("_") or "program"


def _label_of(words: Sequence[str]) -> tuple[tuple[str, ...], str]:
    """Returns the program, and a label for its arguments."""
    arguments = words[2:] if words[0] == "-m" else words[1:]
    label = re.sub(r"[^A-Za-z0-9._]+", "-", " ".join(arguments)).strip("-.")[:60]
    return _place_of(words), label or "run"
