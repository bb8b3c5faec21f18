"""A FileCheck test of the pass behind a change, from the IR that enters it, checked by running the pass.

The IR is made smaller as long as the pass still does to it on base and head what it does to the
whole: the same abstracted edit. CHECK lines are those of head. What stands in for triton-opt is the pass
itself, run alone by each side's own library; FileCheck is the one that Triton's wheels bring.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from irdiff import process
from irdiff.attribute.attribution import CaseToReplay, FirstDivergentPass
from irdiff.compare import abstraction, edits
from irdiff.compile.worker_compiler import WorkerCompiler
from irdiff.config import Config
from irdiff.errors import IrdiffError, NormalizeError
from irdiff.explain import lit_text
from irdiff.explain.lit_text import Reduction
from irdiff.model import EVERY_LAUNCH, Sides
from irdiff.parallel import of_both
from irdiff.resolve.sides import Side
from irdiff.stages import Stage
from irdiff.store import Store
from irdiff.texts import canonicalize
from irdiff.worker.protocol import OnePassWords
from irdiff.worker_client.worker_requests import Requests, read_result
from irdiff.worker_client.workers import Workers

MAX_REDUCTION_S = 60.0
_BATCH = 12
_FILECHECK = "lib*/python*/site-packages/triton/FileCheck"


@dataclass(frozen=True, kw_only=True)
class LitTest:
    text: str
    summary: str


Outputs = Sides[str | None]
"""The outputs of the pass for one text; None if a side refuses it, its input if a side lacks the pass."""


class PassRunner:
    """Runs the pass alone, by a worker of each side."""

    def __init__(
        self, subject: CaseToReplay, stage: str, step: FirstDivergentPass, compiler: WorkerCompiler
    ) -> None:
        self._subject, self._stage, self._step, self._compiler = subject, stage, step, compiler
        self.pipelines: dict[str, str | None] = {}
        """By side, the pipeline that ran; None where a side does not have the pass."""

    def outputs(self, texts: Sequence[str]) -> list[Outputs]:
        base, head = of_both(lambda side: self._run(side, texts))
        return [Sides(base=ours, head=theirs) for ours, theirs in zip(base, head, strict=True)]

    def _run(self, name: str, texts: Sequence[str]) -> list[str | None]:
        subject, launch = self._subject, self._subject.launches.of(name)
        assert launch is not None, "a pass that is responsible ran on both sides"
        with self._compiler.store.scratch() as folder:
            paths = [folder / f"input.{number}.ttgir" for number in range(len(texts))]
            for path, text in zip(paths, texts, strict=True):
                path.write_text(text)
            words: OnePassWords = {
                "op": "one_pass",
                "stage": self._stage,
                "argument": self._step.argument,
                "options": self._step.options,
                "metadata": subject.case.metadata.of(name),
                "inputs": list(map(str, paths)),
                "timeout_s": MAX_REDUCTION_S,
            }
            self._compiler.ask(words, subject.sides.of(name), launch, subject.target, folder)
            result = read_result(folder) or {}
            pipeline = self.pipelines.setdefault(name, result.get("pipeline"))
            if result.get("outcome") == "compiled" and pipeline is None:
                return [lit_text.without_locations(text) for text in texts]
            outputs = [folder / f"output.{number}" for number in range(len(texts))]
            return [
                lit_text.without_locations(path.read_text()) if path.exists() else None for path in outputs
            ]


Holds = Callable[[Sequence[str], str], bool]
"""Returns True if the CHECK lines hold for a text."""


def generate(
    subject: CaseToReplay, step: FirstDivergentPass, config: Config, report: Callable[[str], None]
) -> LitTest:
    """Raises IrdiffError where the pass alone does not make the difference."""
    case, store = subject.case, Store(config.store)
    content = store.get(step.entering.head)
    if content is None:
        raise IrdiffError(
            f"{case.id}: the IR that enters {step.name} is gone from the store", hint="compare again"
        )
    stage = case.origin.stage if case.origin else Stage.TTGIR
    with closing(Workers(config)) as workers:
        launches = tuple(f"{launch.id}@{case.target}" for launch in subject.launches if launch)
        requests, wanted = Requests(config, workers), replace(EVERY_LAUNCH, cases=launches)
        runner = PassRunner(subject, stage, step, WorkerCompiler(requests, store, wanted, reuse=True))
        return written(subject, step, content.decode(), runner, _filecheck(subject.sides, config), report)


def written(
    subject: CaseToReplay,
    step: FirstDivergentPass,
    entering: str,
    runner: PassRunner,
    holds: Holds | None,
    report: Callable[[str], None],
) -> LitTest:
    """The test of a pass, from the IR that enters it at head; `holds` is None where no side brings FileCheck.

    Raises IrdiffError where the pass alone does not make the difference.
    """
    report(f"running {step.name} alone")
    whole, wanted = _first_that_parses(runner, entering, step)
    report(f"making the IR smaller: {len(whole.splitlines())} lines")
    small = _reduced(whole, wanted, runner)
    (outputs,) = runner.outputs([small])
    checks, verified = _checks(str(outputs.base), str(outputs.head), holds)
    pipeline = runner.pipelines.get("head") or runner.pipelines.get("base") or f"any({step.argument})"
    base, head = (side.toolchain.spec for side in subject.sides)
    command = pipeline.replace("any(", "builtin.module(", 1)
    lines = [
        f"RUN: triton-opt %s --pass-pipeline='{command}' | FileCheck %s",
        "",
        f"{step.name}: {subject.case.id}, {base} -> {head}. Written by irdiff explain --lit.",
        "",
        *checks,
    ]
    return LitTest(
        text="".join(f"// {line}\n" if line else "\n" for line in lines) + f"\n{small}",
        summary=f"{step.name}: {len(small.splitlines())} of {len(whole.splitlines())} lines of IR, "
        f"{len(checks)} CHECK lines; {verified}",
    )


def _first_that_parses(runner: PassRunner, raw: str, step: FirstDivergentPass) -> tuple[str, frozenset[str]]:
    """Without locations, if it is read back so, and the edit that the pass makes of it."""
    for text in (lit_text.without_locations(raw), raw):
        if edit := _edit(runner.outputs([text])[0]):
            return text, edit
    raise IrdiffError(
        f"{step.name}, run alone on the IR that enters it, does the same on both sides",
        hint="the difference needs more than the IR that earlier passes leave, or its text cannot be read",
    )


def _edit(outputs: Outputs) -> frozenset[str]:
    """The abstracted edit between both outputs; empty where they are the same, or one is no IR."""
    if outputs.base is None or outputs.head is None:
        return frozenset()
    try:
        lines = [canonicalize(Stage.TTGIR, text or "").lines for text in outputs]
    except NormalizeError:
        return frozenset()
    return frozenset(abstraction.abstract(edits.between(Stage.TTGIR, *lines)))


def _reduced(text: str, wanted: frozenset[str], runner: PassRunner) -> str:
    """The smallest text found in MAX_REDUCTION_S on which the pass makes no other edit.

    Of the steps of one kind all are tried at once, then halves, and so on; of control flow each alone.
    """
    deadline = time.monotonic() + MAX_REDUCTION_S
    lines, tried = text.splitlines(), set[str]()
    size = len(lines)

    def first_like(texts: Sequence[str]) -> str | None:
        edits = map(_edit, runner.outputs(texts))
        return next((text for text, edit in zip(texts, edits, strict=True) if edit and edit <= wanted), None)

    while time.monotonic() < deadline:
        left = [step for step in lit_text.steps(lines) if step.key not in tried]
        if not left:
            break
        kind: list[Reduction] = [step for step in left if step.kind == left[0].kind]
        is_flow = kind[0].kind in lit_text.CONTROL_FLOW
        size = 1 if is_flow else min(size, len(kind))
        chunks = [kind[start : start + size] for start in range(0, len(kind), size)][:_BATCH]
        smaller = first_like(["\n".join(lit_text.applied(lines, chunk)) + "\n" for chunk in chunks])
        if smaller is not None:
            lines = smaller.splitlines()
            size = len(lines)
            if is_flow:  # what was entered from there may go now
                tried.clear()
        elif size > 1:
            size //= 2
        else:
            tried.update(step.key for chunk in chunks for step in chunk)
            size = len(lines)
    small = lit_text.without_unused_aliases("\n".join(lines) + "\n")
    return first_like([lit_text.without_unused_parameters(small)]) or small


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
    program = next((path for root in roots for path in sorted(root.glob(_FILECHECK))), None)
    if program is None:
        return None

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
