"""What launches and cases of a run have in common stands in `run.json` once: in its *parts*.

Where a launch or a case has a part, its place among them stands instead, a number. An artifact is its digest
and its size; metadata is a part and, beside it, the kernel's name. A reader takes what is written out, too:
a run in which nothing is shared, as `--json` writes it, is read by the same rules.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, get_type_hints

from pydantic import TypeAdapter

from irdiff.findings import Finding
from irdiff.model import Argument, Artifact, Case, CaseSummary, Fact, Launch, Origin, Run, Sides

MAX_WRITTEN_OUT_BYTES = 1 << 30
"""Of all parts where they stand. A run of 50,000 cases has two thirds of it."""
_OWN = ("name",)
"""Entries of the metadata that each kernel has for itself."""
_WORDS = ("signature", "constexprs", "attributes", "options")


@dataclass(frozen=True, kw_only=True)
class Part:
    """One of these."""

    argument: Argument | None = None
    words: Mapping[str, str] | None = None
    """Of a launch: its signature, constexprs, attributes or options."""
    facts: Mapping[str, Fact] | None = None
    metadata: Mapping[str, object] | None = None
    origin: Origin | None = None
    summary: CaseSummary | None = None


def _stored(kind: type, **instead: Any) -> Any:
    """The type as it is stored, in which some fields have another type."""
    fields: list[Any] = [
        (row.name, instead.get(row.name, hint), dataclasses.field(default=row.default))
        for row, hint in zip(dataclasses.fields(kind), get_type_hints(kind).values(), strict=True)
    ]
    return dataclasses.make_dataclass(f"Stored{kind.__name__}", fields, frozen=True, kw_only=True)


StoredLaunch = _stored(
    Launch,
    arguments=tuple[int | Argument, ...],
    **dict.fromkeys(_WORDS, int | Mapping[str, str]),
)
StoredCase = _stored(
    Case,
    facts=Sides[int | Mapping[str, Fact]],
    metadata=Sides[tuple[int, Mapping[str, object]] | Mapping[str, object]],
    origin=int | Origin | None,
    summary=int | CaseSummary | None,
    artifacts=Sides[Mapping[str, tuple[str, int] | Artifact]],
)
StoredRun = dataclasses.make_dataclass(
    "StoredRun",
    [("parts", tuple[Part, ...], dataclasses.field(default=()))],
    bases=(
        _stored(
            Run,
            launches=Mapping[str, StoredLaunch],  # type: ignore[valid-type]  # made above
            cases=tuple[StoredCase, ...],  # type: ignore[valid-type]
        ),
    ),
    frozen=True,
    kw_only=True,
)
_part, _case = TypeAdapter(Part), TypeAdapter(StoredCase)
_launches: TypeAdapter[Any] = TypeAdapter(Mapping[str, StoredLaunch])  # type: ignore[valid-type]  # made above
_names: dict[type, tuple[str, ...]] = {}
"""Of the fields of a dataclass, which a large run asks for 200,000 times."""


class PartError(Exception):
    """A number is the place of no such part, or parts stand for more than a run says."""


class PartWriter:
    """Gives parts their places. A part is known by its kind and content, never by which object holds it."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._place_of: dict[bytes, int] = {}
        """By the SHA-256 of a part's row, which names its kind."""
        self._launches: list[dict[str, object]] = []
        self._cases: list[dict[str, object]] = []
        """The fields of each launch and case that hold places."""

    def parts(self) -> Iterator[str]:
        """A row for each part. Call `launches` and `cases` only after it has ended."""
        for launch in self._run.launches.values():
            places: dict[str, object] = {}
            places["arguments"] = yield from self._each("argument", launch.arguments)
            for name in _WORDS:
                places[name] = yield from self._part("words", getattr(launch, name))
            self._launches.append(places)
        for case in self._run.cases:
            places = {}
            shared = [_without_own(side) for side in case.metadata]
            facts = yield from self._each("facts", case.facts)
            metadata = yield from self._each("metadata", shared)
            places["facts"] = Sides(base=facts[0], head=facts[1])
            places["metadata"] = Sides(base=metadata[0], head=metadata[1]).zip(case.metadata.map(_own))
            places["origin"] = yield from self._part("origin", case.origin)
            places["summary"] = yield from self._part("summary", case.summary)
            self._cases.append(places)

    def _each(self, kind: str, values: Iterable[object]) -> Generator[str, None, list[int | None]]:
        places = []
        for value in values:
            places.append((yield from self._part(kind, value)))
        return places

    def _part(self, kind: str, value: object) -> Generator[str, None, int | None]:
        """The place of the part, and its row where it is a new one."""
        if value is None:
            return None
        row = _json.encode({kind: value})
        content = hashlib.sha256(row.encode()).digest()
        if content not in self._place_of:
            self._place_of[content] = len(self._place_of)
            yield row
        return self._place_of[content]

    def launches(self) -> Iterator[str]:
        for (key, launch), places in zip(self._run.launches.items(), self._launches, strict=True):
            yield f"{json.dumps(key)}:{_json.encode(_fields(launch, **places))}"

    def cases(self) -> Iterator[str]:
        for case, places in zip(self._run.cases, self._cases, strict=True):
            yield _json.encode(_fields(case, artifacts=case.artifacts.map(_brief), **places))


class PartReader:
    """Reads parts, then what has them. Raises pydantic's ValidationError, and PartError."""

    def __init__(self) -> None:
        self._parts: list[tuple[Part, int]] = []
        """With the length of what each says."""
        self._written_out_bytes = 0

    def part(self, row: bytes) -> None:
        self._parts.append((_part.validate_json(row, strict=True), len(row)))

    def launch(self, row: bytes) -> tuple[str, Launch]:
        """With its key."""
        key, stored = next(iter(_launches.validate_json(row, strict=True).items()))
        words = {name: self._whole("words", getattr(stored, name)) for name in _WORDS}
        arguments = tuple(self._whole("argument", argument) for argument in stored.arguments)
        return key, Launch(**_fields(stored, arguments=arguments, **words))

    def case(self, row: bytes) -> Case:
        stored = _case.validate_json(row, strict=True)
        return Case(
            **_fields(
                stored,
                facts=stored.facts.map(lambda side: self._whole("facts", side)),
                metadata=stored.metadata.map(self._metadata),
                origin=self._whole("origin", stored.origin),
                summary=self._whole("summary", stored.summary),
                artifacts=stored.artifacts.map(_artifacts),
            )
        )

    def _whole(self, kind: str, stored: Any) -> Any:
        if not isinstance(stored, int):
            return stored
        part, size_bytes = self._parts[stored] if 0 <= stored < len(self._parts) else (Part(), 0)
        whole = getattr(part, kind)
        if whole is None:
            raise PartError(f"{stored} is the place of no part that is {kind}")
        self._written_out_bytes += size_bytes
        if self._written_out_bytes > MAX_WRITTEN_OUT_BYTES:
            raise PartError(f"its parts stand for more than {MAX_WRITTEN_OUT_BYTES} bytes")
        return whole

    def _metadata(self, stored: Any) -> Mapping[str, object]:
        return {**self._whole("metadata", stored[0]), **stored[1]} if isinstance(stored, tuple) else stored


def _fields(of: Any, **instead: object) -> dict[str, Any]:
    """In their order."""
    kind = type(of)
    if kind not in _names:
        _names[kind] = tuple(row.name for row in dataclasses.fields(kind))
    return {name: getattr(of, name) for name in _names[kind]} | instead


def _own(metadata: Mapping[str, object]) -> dict[str, object]:
    return {name: metadata[name] for name in _OWN if name in metadata}


def _without_own(metadata: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in metadata.items() if name not in _OWN}


def _brief(artifacts: Mapping[str, Artifact]) -> dict[str, tuple[str, int]]:
    return {stage: (artifact.digest, artifact.size_bytes) for stage, artifact in artifacts.items()}


def _artifacts(stored: Mapping[str, tuple[str, int] | Artifact]) -> dict[str, Artifact]:
    return {
        stage: row if isinstance(row, Artifact) else Artifact(stage=stage, digest=row[0], size_bytes=row[1])
        for stage, row in stored.items()
    }


def _said(value: object) -> object:
    """What the JSON of a value of the model is, where it is no plain one."""
    return str(value) if isinstance(value, Finding) else _fields(value)


_json = json.JSONEncoder(separators=(",", ":"), default=_said)
