"""Which passes of a compiler run in which cases, and in which they do anything.

Only together with this does "nothing changed" tell a safe edit from one that was never reached. Each stage of
MLIR passes of one side is run again on the text that it compiled, and the IR between passes is kept: a pass
did something where the text after it differs from the one before.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from irdiff.attribute.attributor import Replayer
from irdiff.attribute.passes import State
from irdiff.attribute.replayer import Dump, Replay
from irdiff.compile.worker_compiler import WorkerCompiler
from irdiff.model import Compiled, Launch, Target
from irdiff.resolve.sides import Side
from irdiff.stages import Stage

_STAGES = (
    (Stage.SOURCE, Stage.TTIR),
    (Stage.SOURCE, Stage.GLIR),
    (Stage.TTIR, Stage.TTGIR),
    (Stage.GLIR, Stage.TTGIR),
    (Stage.TTGIR, Stage.LLIR),
)
"""Stages that are made of MLIR passes, with what enters them."""
_NEVER = "never reached, unless head alone has it"


@dataclass(frozen=True, kw_only=True)
class CaseExercise:
    """The passes of one case, each once."""

    case_id: str
    ran: frozenset[str]
    acted: frozenset[str]
    """Those after which the text was another one."""
    is_whole: bool
    """Whether every stage could be run again. What ran in the others is not known."""


@dataclass(frozen=True, kw_only=True)
class PassUse:
    """One pass over all cases."""

    name: str
    ran: int
    acted: int
    examples: tuple[str, ...]
    """Cases in which it did something, the first three."""


@dataclass(frozen=True, kw_only=True)
class Exerciser:
    """Asks one compiler. Thread-safe."""

    side: Side
    compiler: WorkerCompiler
    replayer: Replayer

    def of_launch(self, launch: Launch, target: Target) -> CaseExercise | None:
        """None where the launch does not compile."""
        toolchain, corpus = self.side.toolchain, self.side.corpus
        outcome = self.compiler.compile(toolchain, corpus, launch, target)
        return self._measured(launch, target, outcome) if isinstance(outcome, Compiled) else None

    def _measured(self, launch: Launch, target: Target, compiled: Compiled) -> CaseExercise:
        ran: set[str] = set()
        acted: set[str] = set()
        is_whole = True
        for before, stage in _STAGES:
            if before not in compiled.artifacts or stage not in compiled.artifacts:
                continue
            replayed = self.replayer.run(
                Replay(
                    side=self.side,
                    launch_id=launch.id,
                    target=target,
                    stage=stage,
                    input_stage=before,
                    input_digest=compiled.artifacts[before].digest,
                    metadata=compiled.metadata,
                    dump=Dump.ALL,
                    randomized=False,
                )
            )
            is_whole = is_whole and bool(replayed.states) and not replayed.error
            for name, did in steps(replayed.states):
                ran.add(name)
                acted |= {name} if did else set()
        case_id = f"{launch.id}@{target.name}"
        return CaseExercise(case_id=case_id, ran=frozenset(ran), acted=frozenset(acted), is_whole=is_whole)


def steps(states: Sequence[State]) -> Iterable[tuple[str, bool]]:
    """Each pass that ran, in order, and whether the text after it is another one than before it."""
    for before, after in itertools.pairwise(states):
        yield before.name, before.digest != after.digest


def summarize(found: Iterable[CaseExercise]) -> list[PassUse]:
    """By name. A pass that runs more than once in a case counts once."""
    ran: Counter[str] = Counter()
    acted: dict[str, list[str]] = {}
    for case in sorted(found, key=lambda case: case.case_id):
        ran.update(case.ran)
        for name in case.acted:
            acted.setdefault(name, []).append(case.case_id)
    rows = [(name, ran[name], acted.get(name, [])) for name in sorted(ran)]
    return [
        PassUse(name=name, ran=count, acted=len(ids), examples=tuple(ids[:3])) for name, count, ids in rows
    ]


def sentences(passes_of_files: Mapping[str, Sequence[str]], found: Sequence[CaseExercise]) -> list[str]:
    """For each edited file how many cases run the passes that it defines, and in how many these act."""
    rows = []
    for path, names in sorted(passes_of_files.items()):
        if not names:
            rows.append(f"{path}: defines no pass; whether it was exercised is not known")
            continue
        wanted = set(names)
        ran = sum(bool(case.ran & wanted) for case in found)
        acted = sum(bool(case.acted & wanted) for case in found)
        passes = names[0] if len(names) == 1 else f"{len(names)} passes"
        counted = f"at base {ran} of {len(found)} cases run it, and in {acted} it does something"
        told = f"{path}: defines {passes}; {counted}"
        silent = _NEVER if ran == 0 else "nothing came of it"
        rows.append(told if acted else f"{told}: {silent}")
    unknown = sum(not case.is_whole for case in found)
    if unknown:
        rows.append(
            f"in {unknown} of {len(found)} cases a stage cannot be run again: its passes are not known"
        )
    return rows
