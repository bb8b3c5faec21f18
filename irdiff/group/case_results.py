"""Case results of two sides, in the cache: what was found of a case, ready to be grouped.

A result is kept under all that it was made from: both compilations (artifacts, metadata, what is handed to
the launcher, the assembler and its log), both launches, whether they moved, the target, both toolchains,
whose stages attribution runs again, whether passes were looked for, what reads LLVM IR, irdiff's own code.
Only cases that compiled on both sides are kept, and whose texts were read as they would be the next time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic import TypeAdapter

from irdiff.compare import cases
from irdiff.compare.artifact_comparator import may_be_cured
from irdiff.compare.edits import EditSource
from irdiff.findings import Finding
from irdiff.group.grouping import Description
from irdiff.ir.llir import llvm_process
from irdiff.model import (
    COMPARED_VERDICTS,
    Case,
    Compiled,
    Fact,
    Launch,
    Options,
    Origin,
    Outcome,
    Pair,
    Sides,
    StageStatus,
    Verdict,
)
from irdiff.resolve.sides import Side
from irdiff.store import Store, digest_of_folders, key_of


@dataclass(frozen=True, kw_only=True)
class CaseResult:
    """A compared case, with what grouping needs of it once nothing more will be known of the case."""

    case: Case
    launches: Sides[Launch | None]
    description: Description | None
    """None where no group takes the case."""
    edit: EditSource | None
    """The texts that show its edit best, where attribution found them."""
    unstable: bool
    """As of `Attribution`."""
    transient: bool = False
    """As of `Attribution`: another attempt may find more, so this is not kept."""

    @property
    def id(self) -> str:
        return self.case.id


@dataclass(frozen=True, kw_only=True)
class _Judged:
    """What a record holds."""

    verdict: Verdict
    stages: Mapping[str, StageStatus]
    findings: tuple[Finding, ...]
    origin: Origin | None
    facts: Sides[Mapping[str, Fact]]
    edit: str | None
    source: EditSource | None
    description: Description | None
    unstable: bool


_judged = TypeAdapter(_Judged)


class CaseResults:
    """Thread-safe."""

    def __init__(self, store: Store, sides: Sides[Side], options: Options) -> None:
        self._store = store
        self._is_used = options.use_cache and not options.stages
        """A run of some stages alone is rare, and is judged as it is."""
        made_with = [side.toolchain.digest for side in sides], options.attribute, llvm_process.version()
        self._made_with = key_of("judged/4", _digest_of_code(), made_with)

    def found(self, pair: Pair, outcomes: Sides[Outcome]) -> CaseResult | None:
        """As it was judged before; None where it was not, or a text that it names is gone."""
        key = self._key(pair, outcomes)
        record = self._store.get_record("judged", key) if key else None
        if record is None:
            return None
        result = _case_result(record, pair, outcomes)
        if result.edit and not all(map(self._store.has, (result.edit.base, result.edit.head))):
            return None
        return result

    def keep(self, pair: Pair, outcomes: Sides[Outcome], result: CaseResult) -> None:
        """Keeps what is final, and what the same compilations would be judged as again."""
        case = result.case
        if case.verdict not in COMPARED_VERDICTS or result.transient or may_be_cured(case.findings):
            return
        if key := self._key(pair, outcomes):
            self._store.put_record("judged", key, _judged.dump_python(_kept(result), mode="json"))

    def _key(self, pair: Pair, outcomes: Sides[Outcome]) -> str | None:
        launches = [side.key for side in (pair.base, pair.head) if isinstance(side, Launch)]
        if not self._is_used or len(launches) < len(("base", "head")):
            return None
        made = [_made_of(side) for side in outcomes if isinstance(side, Compiled)]
        return key_of(self._made_with, pair.target, launches, pair.moved, made) if len(made) > 1 else None


def _made_of(side: Compiled) -> list[object]:
    digests = {stage: row.digest for stage, row in side.artifacts.items()}
    return [digests, side.metadata, side.handed, side.assembler, side.assembler_log, side.notes]


def _digest_of_code() -> str:
    """The digest of the modules that make a judgement: another irdiff judges anew."""
    return digest_of_folders(
        "", "store", "compile", "ir", "backends", "compare", "attribute", "effects", "group"
    )


def _kept(result: CaseResult) -> _Judged:
    case = result.case
    return _Judged(
        verdict=case.verdict,
        stages=case.stages,
        findings=case.findings,
        origin=case.origin,
        facts=case.facts,
        edit=case.edit,
        source=result.edit,
        description=result.description,
        unstable=result.unstable,
    )


def _case_result(record: Mapping[str, Any], pair: Pair, outcomes: Sides[Outcome]) -> CaseResult:
    kept = _judged.validate_python(record)
    case = replace(
        cases.blank(pair, kept.verdict),
        origin=kept.origin,
        stages=kept.stages,
        findings=kept.findings,
        facts=kept.facts,
        artifacts=cases.artifacts(pair, outcomes),
        compile_s=outcomes.map(lambda side: side.stage_times_s),
        edit=kept.edit,
    )
    if kept.verdict is not Verdict.UNCHANGED:
        metadata = outcomes.map(lambda side: side.metadata if isinstance(side, Compiled) else {})
        case = replace(case, metadata=metadata)
    assert isinstance(pair.base, Launch)
    assert isinstance(pair.head, Launch)
    return CaseResult(
        case=case,
        launches=Sides(base=pair.base, head=pair.head),
        description=kept.description,
        edit=kept.source,
        unstable=kept.unstable,
    )
