"""A FileCheck test of the pass behind a change, from the IR that enters it, checked by replaying the pass.

The IR is made smaller as long as the pass still does to it on base and head what it does to the
whole: the same abstracted edit. CHECK lines are those of head. What stands in for triton-opt is the pass
itself, run alone by each side's own library; FileCheck is the one that Triton's wheels bring.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

from irdiff import normalize, process
from irdiff.attribute import lit_flow, lit_text
from irdiff.attribute.attribution import ResponsiblePass
from irdiff.capture.catalogs import Wanted
from irdiff.compare import abstraction, edits
from irdiff.config import Config
from irdiff.errors import IrdiffError, NormalizeError
from irdiff.model import Case, Run, Sides
from irdiff.resolve.sides import Side
from irdiff.stages import Stage
from irdiff.store import Store
from irdiff.worker_client.workers import Workers

MAX_REDUCTION_S = 60.0
_BATCH = 12
_FILECHECK = "lib*/python*/site-packages/triton/FileCheck"


@dataclass(frozen=True, kw_only=True)
class LitTest:
    text: str
    summary: str


@dataclass(frozen=True, kw_only=True)
class PassOutputs:
    """What the pass makes of one text; None where it refuses it. A side without the pass gives its input."""

    base: str | None
    head: str | None


class PassRunner(Protocol):
    """Runs the pass of one step on both sides."""

    @property
    def pipelines(self) -> Mapping[str, str | None]:
        """By side, the pipeline that ran; None where a side does not have the pass."""
        ...

    def outputs(self, texts: Sequence[str]) -> list[PassOutputs]: ...


Holds = Callable[[Sequence[str], str], bool]
"""Whether CHECK lines hold for a text."""


@dataclass(frozen=True, kw_only=True)
class Means:
    """What a test is made with."""

    runner: PassRunner
    holds: Holds | None
    """None where no side brings FileCheck."""
    tell: Callable[[str], None]


class WorkerPassRunner:
    """By a worker of each side."""

    def __init__(
        self,
        run: Run,
        case: Case,
        sides: Sides[Side],
        step: ResponsiblePass,
        config: Config,
        workers: Workers,
    ) -> None:
        self._case = case
        self._sides = sides
        self._step = step
        self._config = config
        self._workers = workers
        self._store = Store(config.store)
        self._target = next(target for target in run.targets if target.name == case.target)
        self.pipelines: dict[str, str | None] = {}

    def outputs(self, texts: Sequence[str]) -> list[PassOutputs]:
        with ThreadPoolExecutor(2) as pool:
            base, head = pool.map(lambda side: self._run(side, texts), ("base", "head"))
        return [PassOutputs(base=ours, head=theirs) for ours, theirs in zip(base, head, strict=True)]

    def _run(self, name: str, texts: Sequence[str]) -> list[str | None]:
        side = self._sides.of(name)
        with self._store.scratch() as folder:
            paths = []
            for number, text in enumerate(texts):
                path = folder / f"input.{number}.ttgir"
                path.write_text(text)
                paths.append(str(path))
            own = (self._case.renamed_from or self._case.id) if name == "base" else self._case.id
            workload = own.partition(":")[0]
            self._workers.get(side.toolchain, side.corpus.beside(own, self._target)).request(
                {
                    "op": "one_pass",
                    "launch": own.rpartition("@")[0],
                    **side.corpus.place,
                    "target": asdict(self._target),
                    "select": asdict(Wanted(cases=(own,)).selection(workload, self._target)),
                    "stage": self._case.origin.stage if self._case.origin else Stage.TTGIR,
                    "argument": self._step.argument,
                    "options": self._step.options,
                    "metadata": self._case.metadata.of(name),
                    "inputs": paths,
                    "folder": str(folder),
                    "timeout_s": MAX_REDUCTION_S,
                    "memory_bytes": self._config.limits.memory_bytes,
                }
            )
            return self._read(folder, name, texts)

    def _read(self, folder: Path, name: str, texts: Sequence[str]) -> list[str | None]:
        result = folder / "result.json"
        row = json.loads(result.read_text()) if result.exists() else {}
        if row.get("outcome") == "compiled" and row["pipeline"] is None:
            self.pipelines[name] = None
            return [lit_text.without_locations(text) for text in texts]
        self.pipelines.setdefault(name, row.get("pipeline"))
        made = [folder / f"output.{number}" for number in range(len(texts))]
        return [lit_text.without_locations(path.read_text()) if path.exists() else None for path in made]


def generate(
    run: Run,
    case: Case,
    sides: Sides[Side],
    step: ResponsiblePass,
    config: Config,
    tell: Callable[[str], None],
) -> LitTest:
    """Raises IrdiffError where the pass alone does not make the difference."""
    content = Store(config.store).get(step.entering.head)
    if content is None:
        raise IrdiffError(
            f"{case.id}: the IR that enters {step.name} is gone from the store", hint="compare again"
        )
    with closing(Workers(config)) as workers:
        runner = WorkerPassRunner(run, case, sides, step, config, workers)
        means = Means(runner=runner, holds=_filecheck(sides, config), tell=tell)
        return written(run, case, step, content.decode(), means)


def written(run: Run, case: Case, step: ResponsiblePass, entering: str, means: Means) -> LitTest:
    """The test of a step, from the IR that enters it at head.

    Raises IrdiffError where the pass alone does not make the difference.
    """
    runner = means.runner
    means.tell(f"running {step.name} alone")
    whole = _first_that_parses(runner, entering, step)
    means.tell(f"making the IR smaller: {len(whole.splitlines())} lines")
    small = _reduced(whole, runner)
    outputs = runner.outputs([small])[0]
    pipeline = runner.pipelines.get("head") or runner.pipelines.get("base") or f"any({step.argument})"
    assert outputs.base is not None
    assert outputs.head is not None
    checks, verified = _checks(outputs.base, outputs.head, means.holds)
    return LitTest(
        text=_format(run, case, step, pipeline, small, checks),
        summary=f"{step.name}: {len(small.splitlines())} of {len(whole.splitlines())} lines of IR, "
        f"{len(checks)} CHECK lines; {verified}",
    )


def _first_that_parses(runner: PassRunner, raw: str, step: ResponsiblePass) -> str:
    for text in (lit_text.without_locations(raw), raw):
        outputs = runner.outputs([text])[0]
        if outputs.base is not None and outputs.head is not None and _edit(outputs):
            return text
    raise IrdiffError(
        f"{step.name}, run alone on the IR that enters it, does the same on both sides",
        hint="the difference needs what earlier passes leave beside the IR, or its text is not read back",
    )


def _edit(outputs: PassOutputs) -> frozenset[str]:
    """The abstracted edit between both outputs; empty where they are the same, or one is no IR."""
    if outputs.base is None or outputs.head is None:
        return frozenset()
    try:
        lines = [normalize.canonicalize(Stage.TTGIR, text).lines for text in (outputs.base, outputs.head)]
    except NormalizeError:
        return frozenset()
    return frozenset(abstraction.abstract(edits.between(Stage.TTGIR, *lines)))


def _reduced(text: str, runner: PassRunner) -> str:
    """The smallest text found in MAX_REDUCTION_S on which the pass makes no other edit."""
    wanted = _edit(runner.outputs([text])[0])
    tried: set[str] = set()
    deadline = time.monotonic() + MAX_REDUCTION_S
    lines = text.splitlines()

    def first_like(candidates: list[list[str]]) -> list[str] | None:
        texts = ["\n".join(candidate) + "\n" for candidate in candidates]
        rows = zip(candidates, runner.outputs(texts), strict=True)
        return next((candidate for candidate, out in rows if _is_like(_edit(out), wanted)), None)

    while time.monotonic() < deadline:
        straight = [text for text in lit_flow.straightened(lines) if "\n".join(text) not in tried]
        straighter = first_like(straight[:_BATCH]) if straight else None
        if straighter:
            lines = straighter
            continue
        tried.update("\n".join(text) for text in straight[:_BATCH])
        rows = lit_text.reductions(lines, tried)
        if not rows:
            break
        found = first_like(lit_text.variants(lines, rows, _BATCH))
        if found is None:
            few = rows[:_BATCH]
            found = first_like(lit_text.singles(lines, few))
            if found is None:
                tried.update(row.key for row in few)
        lines = found or lines
    small = lit_text.without_unused_aliases("\n".join(lines) + "\n")
    shorter = lit_text.without_unused_arguments(small)
    return shorter if _is_like(_edit(runner.outputs([shorter])[0]), wanted) else small


def _is_like(edit: frozenset[str], wanted: frozenset[str]) -> bool:
    return bool(edit) and edit <= wanted


def _checks(base: str, head: str, holds: Holds | None) -> tuple[list[str], str]:
    """CHECK lines that hold on head and not on base, the fewest first; and how that is known."""
    choices = [lit_text.checks_of_edit(base, head, before=before) for before in (0, 1)]
    choices.append(lit_text.checks_of_all(head))
    if holds is None:
        return choices[-1], "not checked: no side brings FileCheck"
    for checks in choices:
        if holds(checks, head) and not holds(checks, base):
            return checks, "holds on head and fails on base (FileCheck, the pass replayed alone)"
    raise IrdiffError("no CHECK lines tell head from base", hint="see the edit: irdiff explain RUN CASE")


def _filecheck(sides: Sides[Side], config: Config) -> Holds | None:
    """The FileCheck of head, else that of base."""
    roots = [Path(side.toolchain.path) for side in (sides.head, sides.base)]
    found = next((path for root in roots for path in sorted(root.glob(_FILECHECK))), None)
    if found is None:
        return None
    program = found

    def holds(checks: Sequence[str], text: str) -> bool:
        with Store(config.store).scratch() as folder:
            test, output = folder / "test.mlir", folder / "output.mlir"
            test.write_text("".join(f"// {line}\n" for line in checks))
            output.write_text(text)
            command: list[str | Path] = [program, test, "--input-file", output]
            try:
                process.run(command, env=config.compiler_environment, timeout_s=60)
            except process.CommandFailed:
                return False
            return True

    return holds


def _format(
    run: Run, case: Case, step: ResponsiblePass, pipeline: str, small: str, checks: Sequence[str]
) -> str:
    command = pipeline.replace("any(", "builtin.module(", 1)
    return (
        f"// RUN: triton-opt %s --pass-pipeline='{command}' | FileCheck %s\n\n"
        f"// {step.name}: {case.id}, {run.base.spec} -> {run.head.spec}. Written by irdiff explain --lit.\n\n"
        + "".join(f"// {line}\n" for line in checks)
        + f"\n{small}"
    )
