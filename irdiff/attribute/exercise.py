"""Which passes of a compiler run in which cases, and in which they do anything.

Only together with this does "nothing changed" tell a safe edit from one that was never reached. Each stage of
MLIR passes of one side is run again on the text that it compiled, and the IR between passes is kept: a pass
did something where the text after it differs from the one before.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import product

from irdiff.attribute.operation_kinds import MASKABLE, OperationKind, class_of, kinds
from irdiff.attribute.pass_states import State
from irdiff.attribute.replayer import Dump, Replay, Replayer
from irdiff.compile.worker_compiler import WorkerCompiler
from irdiff.model import Compiled, Launch, Pair, Sides, Target
from irdiff.parallel import Report, in_parallel
from irdiff.resolve.sides import Side
from irdiff.resolve.tree_edits import EditedCode
from irdiff.stages import Stage
from irdiff.words import first_few

_STAGES = (
    (Stage.SOURCE, Stage.TTIR),
    (Stage.SOURCE, Stage.GLIR),
    (Stage.TTIR, Stage.TTGIR),
    (Stage.GLIR, Stage.TTGIR),
    (Stage.TTGIR, Stage.LLIR),
)
"""Stages that are made of MLIR passes, with what enters them."""
_SHOWN = 3
_ELEMENTS_SHOWN = 6
_UNKNOWN = "names no pass or operation; whether it was exercised is not known"


@dataclass(frozen=True, kw_only=True)
class CaseExercise:
    """The passes of one case, each once."""

    case_id: str
    ran: frozenset[str]
    acted: frozenset[str]
    """Those after which the text was another one."""
    entering: Mapping[str, Set[OperationKind]]
    """By the path of an edited source that matches operations, the kinds of those that are there where a pass
    of it begins, or anywhere, if it defines none."""
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


def of_launches(
    side: Side,
    launches: Sequence[tuple[Launch, Target]],
    compiler: WorkerCompiler,
    report: Report,
) -> list[CaseExercise]:
    """Of those that compile; with the kinds of operations that the side's edited sources see."""

    def one(job: tuple[Launch, Target]) -> CaseExercise | None:
        launch, target = job
        compiled = compiler.compile(side, launch, target)
        return (
            _of_launch(side, launch, target, compiled, replayer) if isinstance(compiled, Compiled) else None
        )

    replayer, jobs = Replayer(compiler), compiler.requests.config.jobs
    rows = in_parallel(one, launches, jobs, "exercise", report)
    return [row for row in rows if row is not None]


def _of_launch(
    side: Side, launch: Launch, target: Target, compiled: Compiled, replayer: Replayer
) -> CaseExercise:
    ran: set[str] = set()
    acted: set[str] = set()
    entering: dict[str, set[OperationKind]] = {
        path: set() for path, code in side.edited.items() if code.operations
    }
    is_whole = True
    for before, stage in _STAGES:
        if before not in compiled.artifacts or stage not in compiled.artifacts:
            continue
        replay = Replay(
            side=side,
            launch=launch,
            target=target,
            stage=stage,
            input_stage=before,
            input_digest=compiled.artifacts[before].digest,
            metadata=compiled.metadata,
            dump=Dump.ALL,
        )
        replayed = replayer.run(replay)
        is_whole = is_whole and bool(replayed.states) and not replayed.error
        for name, did in steps(replayed.states):
            ran.add(name)
            acted |= {name} if did else set()
        texts: dict[str, set[OperationKind]] = {}
        for state, path in product(replayed.states, entering):
            if not side.edited[path].passes or state.name in side.edited[path].passes:
                if state.digest not in texts:
                    texts[state.digest] = kinds(state.text)
                entering[path] |= texts[state.digest]
    case_id = f"{launch.id}@{target.name}"
    return CaseExercise(
        case_id=case_id, ran=frozenset(ran), acted=frozenset(acted), entering=entering, is_whole=is_whole
    )


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


def named(head: Side) -> tuple[str, ...]:
    """A note of the edited sources with their passes and operations; none where no source is edited."""
    rows = [
        f"{path}: {first_few([*code.passes, *code.operations], _SHOWN) or 'no pass or operation'}"
        for path, code in head.edited.items()
    ]
    first = "edited sources, the passes that they define and the operations that the edited functions match"
    return (f"{first} (--exercised counts the cases): {'; '.join(rows)}",) if rows else ()


def of_edited(
    sides: Sides[Side], pairs: Sequence[Pair], compiler: WorkerCompiler, report: Report
) -> tuple[str, ...]:
    """For each edited source how many cases run a pass that it defines, and have an operation that its edited
    functions match: counted at head, which alone has a new pass.
    """
    if not sides.head.edited:
        return ()
    launches = [(pair.head, pair.target) for pair in pairs if isinstance(pair.head, Launch)]
    rows = sentences(sides.head.edited, of_launches(sides.head, launches, compiler, report))
    if sides.head.counting is None:
        # as they were typed: a label is `main (1a2b3c4d5e)`
        base, head = (side.toolchain.spec.partition(" ")[0] for side in sides)
        build = f"irdiff toolchain build {head} --coverage {base}"
        rows.append(f"which edited lines ran is not known: no compiler was built to count them ({build})")
    return tuple(rows)


def sentences(edited: Mapping[str, EditedCode], found: Sequence[CaseExercise]) -> list[str]:
    """For each edited file how many cases run the passes that it defines, in how many these act, and how many
    have each operation that its edited functions match.
    """
    rows = []
    for path, code in sorted(edited.items()):
        parts = []
        if wanted := set(code.passes):
            ran = sum(bool(case.ran & wanted) for case in found)
            acted = sum(bool(case.acted & wanted) for case in found)
            passes = code.passes[0] if len(wanted) == 1 else f"{len(wanted)} passes"
            silent = "" if acted else f": {'nothing came of it' if ran else 'never reached'}"
            counted = f"of {len(found)} cases {ran} run it, {acted} change by it"
            parts.append(f"defines {passes}; {counted}{silent}")
        parts += [_seen(name, [case.entering[path] for case in found]) for name in code.operations]
        rows.append(f"{path}: {'; '.join(parts) or _UNKNOWN}")
    unknown = sum(not case.is_whole for case in found)
    if unknown:
        rows.append(
            f"in {unknown} of {len(found)} cases a stage cannot be run again: its passes are not known"
        )
    return rows


def _seen(operation: str, cases: Sequence[Set[OperationKind]]) -> str:
    """`AtomicRMWOp: 3 of 28 cases (add i32, fadd f32), with a mask: 0 of 28 cases`."""
    name = class_of(operation)
    # LLVM's namesakes are what it became: `llvm.atomicrmw`
    had = [
        [kind for kind in case if class_of(kind.operation) == name and not kind.operation.startswith("llvm.")]
        for case in cases
    ]
    elements = sorted({kind.element for case in had for kind in case} - {""})
    text = f"{operation}: {sum(map(bool, had))} of {len(cases)} cases"
    text += f" ({first_few(elements, _ELEMENTS_SHOWN)})" if elements else ""
    if name in map(class_of, MASKABLE):
        masked = sum(any(kind.masked for kind in case) for case in had)
        text += f", with a mask: {masked} of {len(cases)} cases"
    return text
