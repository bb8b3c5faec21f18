"""One case from its two launches to its verdict: compiles what must be compiled, and no more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from irdiff.compare import cases, facts, launch_metadata, verdicts
from irdiff.compare.compiler import Compiler
from irdiff.compare.judge import DamagedArtifactError, Judge, made_by
from irdiff.compare.verdicts import TextComparison
from irdiff.compile.compiler import below_frontend
from irdiff.findings import Finding, FindingKind
from irdiff.model import (
    Case,
    Compiled,
    Fact,
    Failed,
    Launch,
    Options,
    Outcome,
    Pair,
    Sides,
    Target,
    Verdict,
)
from irdiff.parallel import of_both
from irdiff.resolve.sides import Side
from irdiff.stages import MACHINE_STAGES, Stage
from irdiff.store import key_of
from irdiff.store.interning import interned

_REPEATED_ASSEMBLIES = 4
_FACT_STAGES: tuple[str, ...] = (Stage.TTGIR, Stage.PTX, Stage.AMDGCN, Stage.CUBIN, Stage.HSACO)


@dataclass(frozen=True, kw_only=True)
class _Half:
    """One side of a case at work."""

    side: Side
    launch: Launch
    target: Target
    outcome: Outcome
    fresh: bool
    """Whether nothing of the store is to be trusted for this case."""

    @property
    def compiled(self) -> Compiled:
        assert isinstance(self.outcome, Compiled)
        return self.outcome


class CaseComparer:
    """Compares cases of two sides. Thread-safe."""

    def __init__(self, compiler: Compiler, judge: Judge, sides: Sides[Side], options: Options) -> None:
        self.compiler = compiler
        self.judge = judge
        self.sides = sides
        self.options = options
        self._assemblers_differ: dict[str, bool] = {}
        """By target: whether both sides run the same ptxas, once a case has shown it. It only saves time."""

    def compare(self, pair: Pair) -> Case:
        if not isinstance(pair.base, Launch) or not isinstance(pair.head, Launch):
            return cases.one_sided(pair)
        if self.is_same_input(pair):
            return cases.unchanged_by_input(pair)
        try:
            return self._compare_compiled(pair, pair.base, pair.head, fresh=False)
        except DamagedArtifactError:
            return self._compare_compiled(pair, pair.base, pair.head, fresh=True)

    def is_same_input(self, pair: Pair) -> bool:
        """The same stages on the same input give the same code: nothing to compile.

        Toolchains that differ above the stages alone are the same here once a compilation of the launch has
        shown that its stages call nothing of what differs. A launch that its workload expects to fail is
        compiled all the same: where it compiles on neither side nothing was compared, and it is not called
        unchanged.
        """
        base, head = pair.base, pair.head
        if not isinstance(base, Launch) or not isinstance(head, Launch):
            return False
        if not (base.expected and head.expected):
            return False
        if not self.options.shortcut or base.digest is None or base.digest != head.digest:
            return False
        ours, theirs = (side.toolchain for side in self.sides)
        if ours.digest == theirs.digest:
            return True
        return self._has_same_stages(pair.target) and self.compiler.keeps_below_frontend(
            ours, base, pair.target
        )

    def _compare_compiled(self, pair: Pair, base: Launch, head: Launch, *, fresh: bool) -> Case:
        launches = Sides(base=base, head=head)

        def half(name: str) -> _Half:
            return self._compile(self.sides.of(name), launches.of(name), pair.target, fresh=fresh)

        # one side's result may serve the other, where the stages and what enters them are the same
        serves = self._has_same_stages(pair.target) and base.digest == head.digest
        halves = Sides(base=half("base"), head=half("head")) if serves else of_both(half)
        if _any_failed(halves):
            return _failed(pair, halves)
        ours, theirs = halves.base.compiled, halves.head.compiled
        if self.options.stages:
            ours, theirs = verdicts.with_stages(ours, theirs, self.options.stages)
        texts = verdicts.compare_texts(ours, theirs, self.judge.compare)
        if ours.assembler and theirs.assembler:
            self._assemblers_differ[pair.target.name] = ours.assembler.digest != theirs.assembler.digest
        by_rule = self.options.shortcut and self._has_same_stage_code(pair.target)
        if by_rule and self._same_by_rule(ours, theirs):
            return self._judged(pair, halves, texts, verdicts.ByRule())
        halves = halves.map(self._assembled)
        if _any_failed(halves):
            return _failed(pair, halves)
        return self._judged(pair, halves, texts, self._evidence(halves))

    def _compile(self, side: Side, launch: Launch, target: Target, *, fresh: bool) -> _Half:
        # Where both sides may run the same ptxas, PTX is looked at before it is assembled.
        ours, theirs = (each.toolchain.assemblers for each in self.sides)
        differ = self._assemblers_differ.get(target.name, not set(ours.values()) & set(theirs.values()))
        wait = self.options.shortcut and not differ and self._has_same_stage_code(target)
        outcome = self.compiler.compile(
            side.toolchain, side.corpus, launch, target, assemble=fresh or not wait, fresh=fresh
        )
        return _Half(side=side, launch=launch, target=target, outcome=outcome, fresh=fresh)

    def _has_same_stages(self, target: Target) -> bool:
        ours, theirs = (below_frontend(side.toolchain, target) for side in self.sides)
        return ours == theirs

    def _has_same_stage_code(self, target: Target) -> bool:
        """Whether both do the same with what an assembler makes: one may change that, or run it twice."""
        ours, theirs = (side.toolchain.stage_code.get(target.backend) for side in self.sides)
        return ours is not None and ours == theirs

    def _assembled(self, half: _Half) -> _Half:
        side = half.side
        made = self.compiler.assemble(side.toolchain, side.corpus, half.launch, half.target, half.compiled)
        return replace(half, outcome=made)

    def _judged(
        self,
        pair: Pair,
        halves: Sides[_Half],
        texts: verdicts.StageComparison,
        evidence: verdicts.Evidence,
    ) -> Case:
        ours, theirs = halves.base.compiled, halves.head.compiled
        findings = [
            *texts.findings,
            *_launch_findings(halves.base.launch, halves.head.launch),
            *verdicts.findings_of(evidence),
        ]
        differing = launch_metadata.differing(ours.metadata, theirs.metadata)
        if differing:
            findings.append(Finding(FindingKind.LAUNCH_DIFFERS, ",".join(differing)))
        after = verdicts.made_of_binaries(ours, theirs)
        verdict, stages, first = verdicts.judge(texts, evidence, launch_differs=bool(differing), after=after)
        case = replace(
            cases.blank(pair, verdict),
            origin=cases.origin(first) if first else None,
            stages=interned(stages),
            findings=interned(tuple(dict.fromkeys(findings))),
            artifacts=Sides(base=ours.artifacts, head=theirs.artifacts),
            compile_s=Sides(base=ours.stage_times_s, head=theirs.stage_times_s),
        )
        if verdict is Verdict.UNCHANGED:
            return case
        return replace(
            case,
            facts=Sides(base=ours, head=theirs).map(lambda side: self._facts(side, pair.target)),
            metadata=Sides(base=ours.metadata, head=theirs.metadata),
        )

    # machine code

    def _same_by_rule(self, base: Compiled, head: Compiled) -> bool:
        ours, theirs = base.artifacts.get(Stage.PTX), head.artifacts.get(Stage.PTX)
        if not ours or not theirs or not verdicts.same_assembler(base, head):
            return False
        digest = self.judge.assembler_input_digest
        return ours.digest == theirs.digest or digest(ours.digest) == digest(theirs.digest)

    def _evidence(self, halves: Sides[_Half]) -> verdicts.Evidence:
        ours, theirs = halves.base.compiled, halves.head.compiled
        binary = verdicts.shared_binary(ours, theirs)
        if binary is None:
            return verdicts.without_binaries(ours, theirs)
        a, b = ours.artifacts[binary], theirs.artifacts[binary]
        same = self.judge.same(binary, a.digest, b.digest)
        findings: tuple[Finding, ...] = ()
        if not same and verdicts.same_assembler(ours, theirs):
            text = self._ptx_texts(ours, theirs)
            if text and text.equal and self._codes(halves.base) & self._codes(halves.head):
                same, findings = True, (Finding(FindingKind.ASSEMBLER_SETS_INTERSECT),)
            elif text and text.equal and text.header_equal:
                findings = (Finding(FindingKind.ASSEMBLER_ALLOCATED_OTHERWISE),)
        if not same and self._has_same_instructions(binary, ours, theirs):
            findings = (*findings, Finding(FindingKind.SAME_INSTRUCTIONS))
        return verdicts.Binaries(stage=MACHINE_STAGES[binary], same=same, findings=findings)

    def _has_same_instructions(self, binary: str, base: Compiled, head: Compiled) -> bool:
        return self.judge.same_instructions(
            *(
                {
                    name: side.artifacts[name].digest
                    for name in (binary, Stage.AMDGCN)
                    if name in side.artifacts
                }
                for side in (base, head)
            )
        )

    def _ptx_texts(self, base: Compiled, head: Compiled) -> TextComparison | None:
        """None where not both sides have PTX.

        Where both have the same text and one assembler, another result can only be the assembler's own: its
        noise, or what it makes of names and numbers. Any other difference, of the assembler too, is real.
        """
        a, b = base.artifacts.get(Stage.PTX), head.artifacts.get(Stage.PTX)
        if not a or not b:
            return None
        return self.judge.compare(Stage.PTX, a.digest, b.digest)

    def _codes(self, half: _Half) -> set[str]:
        """Digests of the machine code of several compilations under randomized addresses."""
        outcomes = [half.outcome, *(self._again(half, attempt) for attempt in range(_REPEATED_ASSEMBLIES))]
        cubins = [outcome.artifacts.get(Stage.CUBIN) for outcome in outcomes if isinstance(outcome, Compiled)]
        return {self.judge.code_digest(Stage.CUBIN, cubin.digest) for cubin in cubins if cubin}

    def _again(self, half: _Half, attempt: int) -> Outcome:
        side = half.side
        return self.compiler.recompile(
            side.toolchain, side.corpus, half.launch, half.target, attempt=attempt, fresh=half.fresh
        )

    # facts

    def _facts(self, compiled: Compiled, target: Target) -> Mapping[str, Fact]:
        parts = {name: compiled.artifacts[name] for name in _FACT_STAGES if name in compiled.artifacts}
        digests = {name: artifact.digest for name, artifact in parts.items()}
        made_of = (digests, compiled.metadata, compiled.assembler_log, target)
        key = key_of("facts/2", made_by(), *made_of)
        known: dict[str, Fact] | None = self.judge.store.get_record("facts", key)
        if known is None:
            contents = {name: self.judge.content(artifact.digest) for name, artifact in parts.items()}
            known = facts.of_side(compiled, contents, target)
            self.judge.store.put_record("facts", key, known)
        return interned(known)


def _any_failed(halves: Sides[_Half]) -> bool:
    return any(isinstance(half.outcome, Failed) for half in halves)


def _failed(pair: Pair, halves: Sides[_Half]) -> Case:
    ours, theirs = halves.base.outcome, halves.head.outcome
    failures = Sides(
        base=ours.failure if isinstance(ours, Failed) else None,
        head=theirs.failure if isinstance(theirs, Failed) else None,
    )
    return replace(
        cases.failed(pair, failures),
        artifacts=Sides(base=ours.artifacts, head=theirs.artifacts),
        findings=_launch_findings(halves.base.launch, halves.head.launch),
        compile_s=Sides(base=ours.stage_times_s, head=theirs.stage_times_s),
    )


def _launch_findings(base: Launch, head: Launch) -> tuple[Finding, ...]:
    parts = [
        name
        for name in ("signature", "constexprs", "attributes")
        if getattr(base, name) != getattr(head, name)
    ]
    return (Finding(FindingKind.SPECIALIZATION_DIFFERS, ",".join(parts)),) if parts else ()
