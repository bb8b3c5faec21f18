"""Targets from `targets/NAME.toml`: adding a file adds a target."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import ConfigDict, Field, PlainValidator, StrictInt, StrictStr, TypeAdapter
from pydantic.dataclasses import dataclass

from irdiff.errors import UsageError
from irdiff.model import Fact, Target
from irdiff.resolve import toml_file

DEFAULT = ("sm_90", "sm_100", "gfx942", "gfx950")
_Name = Annotated[StrictStr, Field(min_length=1)]


def _arch(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int | str) or not value:
        raise ValueError("a compute capability times ten, as in 90, or a name, as in 'gfx942'")
    return value


def _fact(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError("a fact is a number or a text")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("a fact is a finite number")
    return value


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class _File:
    """What a file says; see `model.Target`."""

    title: _Name | None = None
    backend: _Name
    arch: Annotated[int | str, PlainValidator(_arch)]
    warp_size: Annotated[StrictInt, Field(ge=1)]
    facts: Mapping[str, Annotated[Fact, PlainValidator(_fact)]] = Field(default_factory=dict)
    sources: Mapping[str, StrictStr] = Field(default_factory=dict)


_file = TypeAdapter(_File)


def load_all(folders: Sequence[Path]) -> dict[str, Target]:
    """Every target of the folders by name; a later folder overrides an earlier one."""
    found = {}
    for folder in folders:
        for path in sorted(folder.glob("*.toml")):
            found[path.stem] = load(path)
    return found


def select(names: Sequence[str], folders: Sequence[Path]) -> tuple[Target, ...]:
    """The targets of these names. Where no name is given, the four default ones."""
    known = load_all(folders)
    wanted = list(dict.fromkeys(part for name in names for part in name.split(",") if part)) or list(DEFAULT)
    if "all" in wanted:
        return tuple(known.values())
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise UsageError(
            f"no target {', '.join(unknown)}; known are {', '.join(known)}",
            hint=f"add a file {folders[-1]}/{unknown[0]}.toml, or choose one of the known ones",
        )
    return tuple(known[name] for name in wanted)


def load(path: Path) -> Target:
    """Raises UsageError with the place of the mistake."""
    hint = "it needs backend, arch and warp_size; compare it with a target that irdiff ships"
    file = toml_file.checked(_file, toml_file.read(path), str(path), "a target file", hint=hint)
    return Target(
        name=path.stem,
        backend=file.backend,
        arch=file.arch,
        warp_size=file.warp_size,
        title=file.title or path.stem,
        facts=dict(file.facts),
        sources=dict(file.sources),
    )
