"""Judged cases of two sides, in the store: what was found of a case, ready to be grouped.

Compared, attributed and described, a case has asked the store some twenty questions, one for each link of
the evidence. Asked again with the same two compilations they have the same answers. So the judgement is kept
as one record, under a key of all that it was made from:

- the checksums of both compilations' records: artifacts, metadata, assembler and its log. They lie under the
  input digest and the toolchain below the frontend, and are looked up for each case as ever;
- both launches whole, the target whole, and both toolchains, whose stages attribution runs again;
- whether passes were looked for, what reads LLVM IR, and irdiff's own code that compares, attributes and
  describes.

It is one more link of the same chain and cannot hide a change: another compilation has another record. Nor
does it outlive what it names: each artifact must be there, as for a compilation taken from the store. Only
cases that compiled on both sides are kept, and whose texts were read as they would be the next time. All
others are judged each time, and so is everything with `--no-shortcut`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from pydantic import TypeAdapter
from pydantic_core import from_json

from irdiff.compare import cases
from irdiff.compare.edits import EditSource
from irdiff.compare.judge import may_be_cured
from irdiff.findings import Finding
from irdiff.group.grouping import Description
from irdiff.model import (
    COMPARED_VERDICTS,
    GROUPED_VERDICTS,
    Artifact,
    Case,
    Launch,
    Options,
    Origin,
    Pair,
    Sides,
    StageStatus,
    Target,
    Toolchain,
    Verdict,
)
from irdiff.normalize import llvm_process
from irdiff.resolve.sides import Side
from irdiff.store import Store, key_of, sha256
from irdiff.store.interning import read_once
from irdiff.store.own_code import digest_of_folders

_OWN = "name"
"""The entry of the metadata that each kernel has for itself."""


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A compared case, with what grouping needs of it once nothing more will be known of the case."""

    case: Case
    launches: Sides[Launch | None]
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


class KeptCompilations(Protocol):
    """What is asked of a compiler. Thread-safe."""

    def kept_as(self, toolchain: Toolchain, launch: Launch, target: Target) -> str | None:
        """The checksum of the record that the result of a compilation would be taken from."""
        ...

    def kept_artifacts(self, toolchain: Toolchain, launch: Launch, target: Target) -> Mapping[str, str]:
        """The digests of that record's artifacts, by stage."""
        ...


@dataclass(frozen=True, kw_only=True)
class _Common:
    """The part of a judgement that many cases have in common."""

    verdict: Verdict
    stages: Mapping[str, StageStatus]
    findings: tuple[Finding, ...]
    origin: Origin | None
    again: Sides[Mapping[str, bool]]


_found, _described = TypeAdapter(_Common), TypeAdapter(Description)


class Judgements:
    """Thread-safe."""

    def __init__(
        self, store: Store, compiler: KeptCompilations, sides: Sides[Side], options: Options
    ) -> None:
        self._store = store
        self._compiler = compiler
        self._sides = sides
        self._is_used = options.shortcut and not options.stages
        """A run of some stages alone is rare, and is judged as it is."""
        made_with = [side.toolchain.digest for side in sides], options.attribute, llvm_process.version()
        self._made_with = key_of("judged/1", _digest_of_code(), made_with)
        self._targets: dict[str, str] = {}
        self.sides_taken = 0
        """How many sides of cases needed no look at their compilation, for progress."""

    def found(self, pair: Pair) -> Judged | None:
        """As it was judged before; None where it was not, or an artifact is gone."""
        key = self._key(pair)
        record = self._store.get_record("judged", key) if key else None
        if record is None:
            return None
        judged = _judged(record, pair)
        digests = [row.digest for side in judged.case.artifacts for row in side.values()]
        if judged.edit:
            digests += [judged.edit.base, judged.edit.head]
        if not all(map(self._store.has, digests)):
            return None
        self.sides_taken += 2
        return judged

    def keep(self, pair: Pair, judged: Judged) -> None:
        """Keeps what is final, and what the same compilations would be judged as again."""
        case = judged.case
        is_described = judged.description is not None or case.verdict not in GROUPED_VERDICTS
        curable = judged.may_be_cured or may_be_cured(case.findings)
        if case.verdict not in COMPARED_VERDICTS or not is_described or curable:
            return
        key = self._key(pair)
        if key and self._is_of_what_is_kept(pair, case):
            self._store.put_record("judged", key, _record(judged))

    def _is_of_what_is_kept(self, pair: Pair, case: Case) -> bool:
        """Another process may have compiled it again meanwhile: the key would name that compilation."""
        return all(
            isinstance(launch, Launch)
            and self._compiler.kept_artifacts(side.toolchain, launch, pair.target)
            == {stage: row.digest for stage, row in artifacts.items()}
            for side, launch, artifacts in zip(
                self._sides, (pair.base, pair.head), case.artifacts, strict=True
            )
        )

    def _key(self, pair: Pair) -> str | None:
        base, head = pair.base, pair.head
        if not self._is_used or not isinstance(base, Launch) or not isinstance(head, Launch):
            return None
        made_from = [self._made_with, self._target(pair.target), base.key, head.key]
        for side, launch in zip(self._sides, (base, head), strict=True):
            kept = self._compiler.kept_as(side.toolchain, launch, pair.target)
            if kept is None:
                return None
            made_from.append(kept)
        return sha256("".join(made_from).encode())

    def _target(self, target: Target) -> str:
        if target.name not in self._targets:
            self._targets[target.name] = key_of(target)
        return self._targets[target.name]


def _digest_of_code() -> str:
    """The digest of the modules that make a judgement: another irdiff judges anew."""
    return digest_of_folders("", "store", "compile", "normalize", "binaries", "compare", "attribute", "group")


# the record: what many cases have in common stands in it as text, which is read once for all of them


def _record(judged: Judged) -> dict[str, Any]:
    case, description = judged.case, judged.description
    found = _Common(
        verdict=case.verdict,
        stages=case.stages,
        findings=case.findings,
        origin=case.origin,
        again=judged.again,
    )
    return {
        "found": _found.dump_json(found).decode(),
        "described": _described.dump_json(description).decode() if description else None,
        "facts": [json.dumps(side) for side in case.facts],
        "metadata": [
            [json.dumps({name: side[name] for name in side if name != _OWN}), side.get(_OWN)]
            for side in case.metadata
        ],
        "artifacts": [
            {stage: [row.digest, row.size_bytes] for stage, row in side.items()} for side in case.artifacts
        ],
        "compile_s": list(case.compile_s),
        "edit": case.edit,
        "source": [judged.edit.ir, judged.edit.base, judged.edit.head] if judged.edit else None,
    }


def _judged(record: Mapping[str, Any], pair: Pair) -> Judged:
    found: _Common = read_once("found", record["found"], _found.validate_json)
    source = record["source"]
    case = replace(
        cases.blank(pair, found.verdict),
        origin=found.origin,
        stages=found.stages,
        findings=found.findings,
        facts=_both(record["facts"]).map(_plain),
        metadata=_both(record["metadata"]).map(_metadata),
        artifacts=_both(record["artifacts"]).map(_artifacts),
        compile_s=_both(record["compile_s"]),
        edit=record["edit"],
    )
    assert isinstance(pair.base, Launch)
    assert isinstance(pair.head, Launch)
    return Judged(
        case=case,
        launches=Sides(base=pair.base, head=pair.head),
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


def _metadata(row: list[Any]) -> Mapping[str, object]:
    common = _plain(row[0])
    return common if row[1] is None else {**common, _OWN: row[1]}


def _artifacts(side: Mapping[str, list[Any]]) -> Mapping[str, Artifact]:
    return {
        stage: Artifact(stage=stage, digest=digest, size_bytes=size) for stage, (digest, size) in side.items()
    }
