"""What launches and cases of a run have in common stands in `run.json` once: in its *parts*.

Where a launch or a case has a part, its place among them stands instead, a number. An artifact is its digest
and its size; metadata is a part and, next to it, the kernel's name. A reader takes what is written out, too:
a run in which nothing is shared, as `--json` writes it, is read by the same rules.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, get_type_hints

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json

from irdiff.findings import Finding
from irdiff.model import Argument, Artifact, Case, CaseSummary, Fact, Launch, Origin, Run, Sides

MAX_WRITTEN_OUT_BYTES = 1 << 30
"""Of all parts where they stand. A run of 50,000 cases has two thirds of it."""
_MAX_ROW_VALUES, _MAX_HEAD_VALUES = 100_000, 2_000_000
"""Values in the JSON of a part, launch or case, and in all that is none of these."""
_LONG: dict[str, type] = {"parts": list, "launches": dict, "cases": list}
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
        (row.name, instead.pop(row.name, hint), dataclasses.field(default=row.default))
        for row, hint in zip(dataclasses.fields(kind), get_type_hints(kind).values(), strict=True)
    ]
    fields += [(name, hint, dataclasses.field(default=())) for name, hint in instead.items()]
    return dataclasses.make_dataclass(f"Stored{kind.__name__}", fields, frozen=True, kw_only=True)


_Launch = _stored(
    Launch, arguments=tuple[int | Argument, ...], **dict.fromkeys(_WORDS, int | Mapping[str, str])
)
_Case = _stored(
    Case,
    facts=Sides[int | Mapping[str, Fact]],
    metadata=Sides[tuple[int, Mapping[str, object]] | Mapping[str, object]],
    origin=int | Origin | None,
    summary=int | CaseSummary | None,
    artifacts=Sides[Mapping[str, tuple[str, int] | Artifact]],
)
stored_run: TypeAdapter[Any] = TypeAdapter(
    _stored(
        Run,
        launches=Mapping[str, _Launch],  # type: ignore[valid-type]  # made above
        cases=tuple[_Case, ...],  # type: ignore[valid-type]
        parts=tuple[Part, ...],
    )
)
_part, _run = TypeAdapter(Part), TypeAdapter(Run)
_launch: TypeAdapter[Any] = TypeAdapter(_Launch)
_case: TypeAdapter[Any] = TypeAdapter(_Case)


class PartError(Exception):
    """A row is not valid, a number is the place of no part, or parts stand for more than a run says."""


# writing


def rows(run: Run) -> dict[str, list[str]]:
    """The JSON of every part, launch and case, by the name of their entry."""
    places: dict[str, int] = {}
    """By the part's JSON, which names its kind: equal parts have one place, whichever object holds them."""

    def place(kind: str, value: object) -> int | None:
        return None if value is None else places.setdefault(_json.encode({kind: value}), len(places))

    def metadata(side: Mapping[str, object]) -> tuple[int | None, dict[str, object]]:
        own = {name: side[name] for name in _OWN if name in side}
        return place("metadata", {name: side[name] for name in side if name not in own}), own

    launches = []
    for key, launch in run.launches.items():
        words = {name: place("words", getattr(launch, name)) for name in _WORDS}
        arguments = [place("argument", argument) for argument in launch.arguments]
        launches.append(f"{json.dumps(key)}:{_json.encode(_fields(launch, arguments=arguments, **words))}")
    cases = [
        _json.encode(
            _fields(
                case,
                facts=case.facts.map(lambda side: place("facts", side)),
                metadata=case.metadata.map(metadata),
                origin=place("origin", case.origin),
                summary=place("summary", case.summary),
                artifacts=case.artifacts.map(
                    lambda side: {name: (row.digest, row.size_bytes) for name, row in side.items()}
                ),
            )
        )
        for case in run.cases
    ]
    return {"parts": list(places), "launches": launches, "cases": cases}


def _fields(of: Any, **instead: object) -> dict[str, Any]:
    """In their order."""
    return {name: getattr(of, name) for name in of.__dataclass_fields__} | instead


_json = json.JSONEncoder(
    separators=(",", ":"), default=lambda value: str(value) if isinstance(value, Finding) else _fields(value)
)


# reading


class _Parts:
    def __init__(self, parts: Iterable[Part]) -> None:
        self._parts = [(part, len(_part.dump_json(part, exclude_none=True))) for part in parts]
        self._written_out_bytes = 0

    def whole(self, kind: str, stored: Any) -> Any:
        """The part that a stored number names, or the stored value itself."""
        if not isinstance(stored, int):
            return stored
        part, size_bytes = self._parts[stored] if 0 <= stored < len(self._parts) else (Part(), 0)
        found = getattr(part, kind)
        if found is None:
            raise PartError(f"{stored} is the place of no part that is {kind}")
        self._written_out_bytes += size_bytes
        if self._written_out_bytes > MAX_WRITTEN_OUT_BYTES:
            raise PartError(f"its parts stand for more than {MAX_WRITTEN_OUT_BYTES} bytes")
        return found

    def launch(self, stored: Any) -> Launch:
        words = {name: self.whole("words", getattr(stored, name)) for name in _WORDS}
        arguments = tuple(self.whole("argument", argument) for argument in stored.arguments)
        return Launch(**_fields(stored, arguments=arguments, **words))

    def case(self, stored: Any) -> Case:
        return Case(
            **_fields(
                stored,
                facts=stored.facts.map(lambda side: self.whole("facts", side)),
                metadata=stored.metadata.map(self._metadata),
                origin=self.whole("origin", stored.origin),
                summary=self.whole("summary", stored.summary),
                artifacts=stored.artifacts.map(_artifacts),
            )
        )

    def _metadata(self, stored: Any) -> Mapping[str, object]:
        return {**self.whole("metadata", stored[0]), **stored[1]} if isinstance(stored, tuple) else stored


def _artifacts(stored: Mapping[str, tuple[str, int] | Artifact]) -> dict[str, Artifact]:
    return {
        stage: row if isinstance(row, Artifact) else Artifact(stage=stage, digest=row[0], size_bytes=row[1])
        for stage, row in stored.items()
    }


def read(document: dict[str, Any]) -> Run:
    """The run of the JSON object of a `run.json`. Raises PartError.

    Rows are validated one by one, up to the first that is not valid: pydantic collects every error of a
    value, and each takes a kilobyte.
    """
    rows = {name: document.pop(name) for name, kind in _LONG.items() if isinstance(document.get(name), kind)}
    head = document | {name: _LONG[name]() for name in rows if name != "parts"}
    run: Run = _validated(_run, "", head, _MAX_HEAD_VALUES)
    parts = _Parts([_validated(_part, f"parts.{n}", row) for n, row in enumerate(rows.get("parts", ()))])
    launches = {
        key: parts.launch(_validated(_launch, "launches", row)) for key, row in rows["launches"].items()
    }
    cases = [parts.case(_validated(_case, f"cases.{n}", row)) for n, row in enumerate(rows["cases"])]
    return dataclasses.replace(run, launches=launches, cases=tuple(cases))


def _validated(adapter: TypeAdapter[Any], where: str, value: object, limit: int = _MAX_ROW_VALUES) -> Any:
    text = to_json(value, inf_nan_mode="constants")
    if text.count(b",") + text.count(b"[") + text.count(b"{") > limit:
        raise PartError(f"{where or 'it'} has more than {limit} values")
    try:
        return adapter.validate_json(text, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join([*filter(None, [where]), *map(str, first["loc"])])[:200]
        older = ": another version of irdiff wrote it" if first["type"].startswith("missing") else ""
        raise PartError(f"{place!a}: {first['msg'][:200]}{older}") from error
