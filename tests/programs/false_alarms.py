"""Does a compiler equal itself whatever does not matter? Both sides compiled apart, and as differently as can be.

    python -m tests.programs.false_alarms [--release 3.9.0 …] [--case PATTERN …] [--tier gate]

The second side has its toolchain in an environment at another path, its corpus in another folder with
every file shifted by seven lines and its comments edited, another HOME and hash seed, randomized or fixed
addresses alike, and the cases in the opposite order. Where the test runs as root, its compilers run as another
user, who may read what root may (the interpreter can lie in root's home) and write nothing of root's. Every
stage must be identical or equivalent; machine code of the same PTX that differs is assembled several times on
both sides, as `compare` does: some releases of ptxas for Blackwell are nondeterministic, and what both sides can
give is no change.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import shlex
import shutil
import subprocess
import sys
import tempfile
import tokenize
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from irdiff import case_ids
from irdiff import config as configuration
from irdiff import texts as stage_texts
from irdiff.backends.machine_code import machine_code
from irdiff.backends.stages import BINARIES
from irdiff.compare import launchers, verdicts
from irdiff.compile.worker_compiler import WorkerCompiler
from irdiff.config import Config
from irdiff.ir.canonical import TextEquality
from irdiff.model import EVERY_LAUNCH, Compiled, Launch, Outcome, StageStatus, Target, Toolchain
from irdiff.parallel import in_parallel
from irdiff.resolve import corpus as corpora
from irdiff.resolve import targets, toolchains
from irdiff.resolve.corpus import Corpus
from irdiff.resolve.sides import Side
from irdiff.store import Store
from irdiff.worker_client.worker_requests import Requests
from irdiff.worker_client.workers import Workers
from tests.programs import edited_toolchain

ROOT = Path(__file__).parents[2]
SHIFT = 7
REPETITIONS = 8
OTHER_USER = 65534
_READ = "+dac_read_search"
AS_OTHER_USER = (
    *("setpriv", f"--reuid={OTHER_USER}", f"--regid={OTHER_USER}", "--clear-groups"),
    *(f"--inh-caps={_READ}", f"--ambient-caps={_READ}", "--"),
)


@dataclass(frozen=True, kw_only=True)
class Alarm:
    """A stage that differs although nothing that matters does."""

    case: str
    stage: str


def shifted(source: str) -> str:
    """The same program seven lines further down, with every comment edited."""
    tokens = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        text = token.string + " (edited)" if token.type == tokenize.COMMENT else token.string
        tokens.append((token.type, text, token.start, token.end, token.line))
    edited = source.splitlines()
    for kind, text, (row, column), _, _ in tokens:
        if kind == tokenize.COMMENT:
            edited[row - 1] = edited[row - 1][:column] + text
    return "# shifted\n" * SHIFT + "\n".join(edited) + "\n"


def moved_corpus(folder: Path) -> Corpus:
    shutil.copytree(ROOT / "corpus", folder)
    for path in folder.rglob("*.py"):
        path.write_text(shifted(path.read_text()))
    return corpora.load(folder)


def moved_toolchain(toolchain: Toolchain, folder: Path, config: Config) -> Toolchain:
    """The same Triton, hard-linked into an environment at another path."""
    return toolchains.resolve(edited_toolchain.make(toolchain, folder, {}), config)


def can_be_another_user() -> bool:
    """Whether this process may start others as OTHER_USER: it is root, with the rights of root."""
    words = [*AS_OTHER_USER, sys.executable, "-c", "import os; print(os.getuid())"]
    try:
        said = subprocess.run(words, capture_output=True, text=True, check=False).stdout
    except OSError:
        return False
    return said.strip() == str(OTHER_USER)


def of_another_user(toolchain: Toolchain, folder: Path) -> Toolchain:
    """The same toolchain, whose workers run as OTHER_USER."""
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nexec {shlex.join(AS_OTHER_USER)} {shlex.quote(toolchain.python)} "$@"\n')
    python.chmod(0o755)
    return replace(toolchain, python=str(python))


class SharedStore(Store):
    """A store in whose scratch folders any user may write: a worker leaves its results there."""

    @contextlib.contextmanager
    def scratch(self) -> Iterator[Path]:
        with super().scratch() as folder:
            folder.chmod(0o777)
            yield folder


def compile_all(
    compiler: WorkerCompiler, side: Side, jobs: Sequence[tuple[Launch, Target]]
) -> dict[str, Outcome]:
    def one(job: tuple[Launch, Target]) -> tuple[str, Outcome]:
        launch, target = job
        outcome = compiler.compile(side, launch, target)
        return f"{launch.id}@{target.name}", outcome

    return dict(in_parallel(one, jobs, compiler.requests.config.jobs + 1, "", lambda _: None))


def captured(
    compiler: WorkerCompiler, side: Side, patterns: Sequence[str], tiers: Sequence[str]
) -> list[tuple[Launch, Target]]:
    found = []
    for workload, target in case_ids.places(
        patterns, side.corpus.workloads, targets.select((), [ROOT / "targets"])
    ):
        for launch in compiler.catalog(side, workload, target).launches:
            if case_ids.selects(patterns, f"{launch.id}@{target.name}") and (
                not tiers or launch.tier in tiers
            ):
                found.append((launch, target))
    return found


def compare_sides(ours: Outcome, theirs: Outcome, stores: tuple[Store, Store]) -> dict[str, StageStatus]:
    if not isinstance(ours, Compiled) or not isinstance(theirs, Compiled):
        same = type(ours) is type(theirs)
        return {"failure": StageStatus.EQUIVALENT if same else StageStatus.CHANGED}

    def equivalent(stage: str, *digests: str) -> TextEquality:
        texts = [
            (store.get(digest) or b"").decode(errors="replace")
            for store, digest in zip(stores, digests, strict=True)
        ]
        return stage_texts.equivalent(stage, *texts)

    stages = dict(verdicts.compare_texts(ours, theirs, equivalent)[0])
    for binary, kind in BINARIES.items():
        a, b = ours.artifacts.get(binary), theirs.artifacts.get(binary)
        if a and b:
            codes = [
                machine_code(binary, store.get(x.digest) or b"").digest
                for store, x in zip(stores, (a, b), strict=True)
            ]
            same = codes[0] == codes[1]
            stages[f"code of {kind.status}"] = StageStatus.EQUIVALENT if same else StageStatus.CHANGED
    if launchers.metadata_differing(ours.metadata, theirs.metadata):
        stages["launch"] = StageStatus.CHANGED
    return stages


def run(
    release: str, patterns: Sequence[str], tiers: Sequence[str], folder: Path, cache: Path
) -> tuple[Counter[str], list[Alarm]]:
    """Counts of statuses, and every false alarm."""
    ours = configuration.load(cache=cache)
    theirs = configuration.load(cache=folder / "other-cache")
    elsewhere = {"PYTHONHASHSEED": "7", "HOME": str(folder), "USER": "somebody-else"}
    theirs = replace(theirs, compiler_environment={**theirs.compiler_environment, **elsewhere})
    toolchain = toolchains.resolve(f"triton=={release}", ours)
    other = moved_toolchain(toolchain, folder / "another-place" / "environment", theirs)
    assert other.digest == toolchain.digest, "the identity of a toolchain does not depend on its path"
    if can_be_another_user():
        other = of_another_user(other, folder)
    corpus, moved = corpora.load(ROOT / "corpus"), moved_corpus(folder / "moved" / "kernels")
    stores = Store(folder / "store"), SharedStore(folder / "another-store-with-a-longer-path")
    outcomes, jobs_of = [], []
    configs = (ours, theirs)
    sides = (Side(toolchain=toolchain, corpus=corpus, note=""), Side(toolchain=other, corpus=moved, note=""))
    with closing(Workers(ours)) as first, closing(Workers(theirs)) as second:
        compilers = [
            WorkerCompiler(
                Requests(config, workers), store, replace(EVERY_LAUNCH, tiers=tuple(tiers)), reuse=True
            )
            for config, store, workers in zip(configs, stores, (first, second), strict=True)
        ]
        for number, (compiler, side) in enumerate(zip(compilers, sides, strict=True)):
            jobs = captured(compiler, side, patterns, tiers)
            outcomes.append(compile_all(compiler, side, jobs[:: -1 if number else 1]))
            jobs_of.append({f"{launch.id}@{target.name}": (launch, target) for launch, target in jobs})
        assert set(outcomes[0]) == set(outcomes[1]) and outcomes[0]
        counts: Counter[str] = Counter()
        alarms = []
        for case, outcome in sorted(outcomes[0].items()):
            digests = {rows[case][0].digest for rows in jobs_of}
            counts[f"input digest: {'identical' if len(digests) == 1 else 'changed'}"] += 1
            if len(digests) > 1:
                alarms.append(Alarm(case=case, stage="input digest"))
            for stage, status in compare_sides(outcome, outcomes[1][case], stores).items():
                name = status.value
                if stage == "code of sass" and status is StageStatus.CHANGED:
                    pairs = zip(compilers, sides, (rows[case] for rows in jobs_of), strict=True)
                    found = [assembled_again(compiler, side, *job) for compiler, side, job in pairs]
                    if found[0] & found[1]:
                        name = f"equivalent (sets of {len(found[0])} and {len(found[1])})"
                counts[f"{stage}: {name}"] += 1
                if name == StageStatus.CHANGED.value:
                    alarms.append(Alarm(case=case, stage=stage))
    counts["cases"] = len(outcomes[0])
    return counts, alarms


def assembled_again(compiler: WorkerCompiler, side: Side, launch: Launch, target: Target) -> set[str]:
    """The machine codes that several compilations under randomized addresses give."""
    again = [compiler.compile(side, launch, target)]
    again += [compiler.compile(side, launch, target, attempt=n) for n in range(REPETITIONS)]
    return {
        machine_code("cubin", compiler.store.get(made.artifacts["cubin"].digest) or b"").digest
        for made in again
        if isinstance(made, Compiled)
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--release", action="append", default=[])
    parser.add_argument("--case", action="append", default=[])
    parser.add_argument("--tier", action="append", default=[])
    options = parser.parse_args()
    other_user = (
        f"user {OTHER_USER}" if can_be_another_user() else "the same user (another needs root, setpriv)"
    )
    print(f"The second side compiles as {other_user}.")
    found = 0
    for release in options.release or ["3.5.1", "3.7.1", "3.9.0"]:
        with tempfile.TemporaryDirectory() as folder:
            counts, alarms = run(
                release, options.case, options.tier, Path(folder), configuration.load().cache
            )
        print(f"{release}: {counts.pop('cases')} cases, {len(alarms)} false alarms")
        for name, count in sorted(counts.items()):
            print(f"  {name:28} {count}")
        for alarm in alarms[:20]:
            print(f"  FALSE ALARM {alarm.case} {alarm.stage}")
        found += len(alarms)
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
