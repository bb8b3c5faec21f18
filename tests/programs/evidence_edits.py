"""Random edits of generated kernel packages: is the default verdict that of compiling both sides anew?

    python -m tests.programs.evidence_edits [--edits 500] [--seed 1] [--projects 50] [--only NAME]

Many projects make one repository, whose every commit edits each of them once. Neighbouring commits are compared
by default, with one store for the whole chain, and with `--no-cache` and an empty store. A difference between
the two verdicts is printed with its edit as a diff and with the command that shows it alone; so is a verdict
with `--no-cache` that is not what the edit alone says. Judges the irdiff of the interpreter that runs it.
"""

from __future__ import annotations

import argparse
import difflib
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.programs.evidence import comparing
from tests.programs.evidence.comparing import Compared, Repository
from tests.programs.evidence.projects import Edit, Project, edited, new_project


@dataclass(frozen=True, kw_only=True)
class Step:
    """One edit of one project, and its verdicts."""

    number: int
    before: Project
    after: Project
    edit: Edit
    default: str
    without_cache: str
    error: str

    @property
    def differs(self) -> bool:
        return self.default != self.without_cache

    @property
    def unexpected(self) -> bool:
        """Whether compiling both sides anew does not give what the edit alone says."""
        return self.edit.expected not in (None, self.without_cache)


def run(edits: int, seed: int, projects: int, shared: Path, only: str | None = None) -> Iterator[Step]:
    """Every step, commit by commit."""
    names = [f"p{index:02}" for index in range(projects)]
    randoms = {name: Random(f"{seed}:{name}") for name in names if only in (None, name)}
    current = {name: new_project(name, random) for name, random in randoms.items()}
    with comparing.workplace() as folder:
        repo = Repository.new(folder / "kernels")
        repo.commit("step-0", _files(current))
        chain = comparing.new_cache(folder / "chain", shared)
        for number in range(1, -(-edits // projects) + 1):
            moved = {name: edited(project, randoms[name]) for name, project in current.items()}
            following = {name: project for name, (project, _) in moved.items()}
            repo.commit(f"step-{number}", _files(following))
            sides = f"step-{number - 1}", f"step-{number}"
            default = comparing.compare_commits(repo, *sides, cache=chain)
            empty = comparing.new_cache(folder / f"empty-{number}", shared)
            anew = comparing.compare_commits(repo, *sides, "--no-cache", cache=empty)
            for name, (project, edit) in moved.items():
                yield Step(
                    number=number,
                    before=current[name],
                    after=project,
                    edit=edit,
                    default=default.verdict_of(f"made/{name}"),
                    without_cache=anew.verdict_of(f"made/{name}"),
                    error=_error(anew, name) or _error(default, name),
                )
            current = following


def _files(projects: Mapping[str, Project]) -> dict[str, str]:
    return {path: text for project in projects.values() for path, text in project.files().items()}


def _error(compared: Compared, name: str) -> str:
    errors = [case["error"] for case in compared.cases() if case["id"].startswith(f"made/{name}:")]
    return "; ".join(filter(None, errors))


def report(step: Step, seed: int, projects: int) -> str:
    """The step in words, how to see it alone, and its edit as a diff."""
    name = step.before.name
    words = f"--seed {seed} --only {name} --projects {projects} --edits {step.number * projects}"
    base, head = step.before.files(), step.after.files()
    lines: list[str] = []
    for path in sorted({*base, *head}):
        texts = [files.get(path, "").splitlines() for files in (base, head)]
        lines += difflib.unified_diff(*texts, path, path, lineterm="", n=1)
    return "\n".join(
        [
            f"{name} step {step.number}: {step.edit.what}: {step.default} by default, {step.without_cache} with "
            f"--no-cache, {step.edit.expected or 'anything'} as the edit says",
            f"  python -m tests.programs.evidence_edits {words}",
            *lines,
            step.error,
        ]
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--edits", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--projects", type=int, default=50, help="how many packages each commit edits")
    parser.add_argument("--only", help="one project, as a difference names it")
    words = parser.parse_args()
    verdicts: Counter[str] = Counter()
    differing = unexpected = 0
    for step in run(words.edits, words.seed, words.projects, comparing.shared_cache(), words.only):
        verdicts[step.without_cache] += 1
        differing += step.differs
        unexpected += step.unexpected
        if step.differs or step.unexpected:
            print(report(step, words.seed, words.projects), flush=True)
    counts = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common())
    print(
        f"{verdicts.total()} edits of seed {words.seed}: {counts}; {differing} default verdicts differ, "
        f"{unexpected} verdicts with --no-cache are not what the edit says"
    )
    return 1 if differing or unexpected else 0


if __name__ == "__main__":
    sys.exit(main())
