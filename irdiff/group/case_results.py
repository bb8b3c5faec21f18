"""Case results of two sides, in the cache: what was found of a case, ready to be grouped.

A result is kept under all that it was made from: both compilations (artifacts, metadata, what is handed to
the launcher, the assembler and its log), both launches, whether they moved, the target, both toolchains,
whose stages attribution runs again, whether passes were looked for, what reads LLVM IR, irdiff's own code.
Only cases that compiled on both sides are kept, and whose texts were read as they would be the next time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic import TypeAdapter
from pydantic_core import from_json

from irdiff.compare import cases
from irdiff.compare.artifact_comparator import may_be_cured
from irdiff.compare.edits import EditSource
from irdiff.findings import Finding
from irdiff.group.grouping import Description
from irdiff.model import (
    COMPARED_VERDICTS,
    GROUPED_VERDICTS,
    Case,
    Compiled,
    Launch,
    Options,
    Origin,
    Outcome,
    Pair,
    Sides,
    StageStatus,
    Verdict,
)
from irdiff.normalize import llvm_process
from irdiff.resolve.sides import Side
from irdiff.store import Store, digest_of_folders, key_of
from irdiff.store.interning import read_once


@dataclass(frozen=True, kw_only=True)
class CaseResult:
    """A compared case, with what grouping needs of it once nothing more will be known of the case."""

    case: Case
    launches: Sides[Launch | None]
    outcomes: Sides[Outcome] | None
    """What both sides compiled to, until the case is described; None where nothing was compiled."""
    description: Description | None
    """None where no group takes the case, or where it is still to be described."""
    edit: EditSource | None
    """The texts that show its edit best, where attribution found them."""
    again: Sides[Mapping[str, bool]]
    """As of `Attribution`."""
    may_be_cured: bool = False
    """As of `Attribution`: another attempt may find more, so this is not kept."""

    @property
    def id(self) -> str:
        return self.case.id


@dataclass(frozen=True, kw_only=True)
class _Common:
    """The part of a judgement that many cases have in common."""

    verdict: Verdict
    stages: Mapping[str, StageStatus]
    findings: tuple[Finding, ...]
    origin: Origin | None
    again: Sides[Mapping[str, bool]]


_found, _described = TypeAdapter(_Common), TypeAdapter(Description)


class CaseResults:
    """Thread-safe."""

    def __init__(self, store: Store, sides: Sides[Side], options: Options) -> None:
        self._store = store
        self._is_used = options.use_cache and not options.stages
        """A run of some stages alone is rare, and is judged as it is."""
        made_with = [side.toolchain.digest for side in sides], options.attribute, llvm_process.version()
        self._made_with = key_of("judged/2", _digest_of_code(), made_with)

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
        is_described = result.description is not None or case.verdict not in GROUPED_VERDICTS
        transient = result.may_be_cured or may_be_cured(case.findings)
        if case.verdict not in COMPARED_VERDICTS or not is_described or transient:
            return
        if key := self._key(pair, outcomes):
            self._store.put_record("judged", key, _record(result))

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
    return digest_of_folders("", "store", "compile", "normalize", "binaries", "compare", "attribute", "group")


# the record: what many cases have in common stands in it as text, which is read once for all of them


def _record(result: CaseResult) -> dict[str, Any]:
    case, description = result.case, result.description
    found = _Common(
        verdict=case.verdict,
        stages=case.stages,
        findings=case.findings,
        origin=case.origin,
        again=result.again,
    )
    return {
        "found": _found.dump_json(found).decode(),
        "described": _described.dump_json(description).decode() if description else None,
        "facts": [json.dumps(side) for side in case.facts],
        "edit": case.edit,
        "source": [result.edit.ir, result.edit.base, result.edit.head] if result.edit else None,
    }


def _case_result(record: Mapping[str, Any], pair: Pair, outcomes: Sides[Outcome]) -> CaseResult:
    found: _Common = read_once("found", record["found"], _found.validate_json)
    source = record["source"]
    case = replace(
        cases.blank(pair, found.verdict),
        origin=found.origin,
        stages=found.stages,
        findings=found.findings,
        facts=_both(record["facts"]).map(_plain),
        artifacts=cases.artifacts(pair, outcomes),
        compile_s=outcomes.map(lambda side: side.stage_times_s),
        edit=record["edit"],
    )
    if found.verdict is not Verdict.UNCHANGED:
        metadata = outcomes.map(lambda side: side.metadata if isinstance(side, Compiled) else {})
        case = replace(case, metadata=metadata)
    assert isinstance(pair.base, Launch)
    assert isinstance(pair.head, Launch)
    return CaseResult(
        case=case,
        launches=Sides(base=pair.base, head=pair.head),
        outcomes=None,
        description=read_once("described", record["described"], _described.validate_json)
        if record["described"]
        else None,
        edit=EditSource(ir=source[0], base=source[1], head=source[2]) if source else None,
        again=found.again,
    )


def _both(sides: list[Any]) -> Sides[Any]:
    return Sides(base=sides[0], head=sides[1])


def _plain(text: str) -> Any:
    return read_once("plain", text, from_json)
