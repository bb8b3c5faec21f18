"""Reads targets from `targets/NAME.toml`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated

from pydantic import ConfigDict, Field, StrictFloat, StrictInt, StrictStr, TypeAdapter
from pydantic.dataclasses import dataclass

from irdiff import case_ids
from irdiff.errors import UsageError
from irdiff.model import Target
from irdiff.resolve import toml_file

DEFAULT = ("sm_90", "sm_100", "gfx942", "gfx950")
FIRST = DEFAULT[0]
"""The default if one target is enough."""
_Name = Annotated[StrictStr, Field(min_length=1)]
_Figure = Annotated[StrictFloat, Field(allow_inf_nan=False)]


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class _TargetFile:
    title: _Name | None = None
    backend: _Name
    arch: Annotated[StrictInt, Field(ge=1)] | _Name
    """A compute capability times ten, such as 90, or a name, such as `gfx942`."""
    warp_size: Annotated[StrictInt, Field(ge=1)]
    facts: Mapping[str, StrictInt | _Figure | StrictStr] = Field(default_factory=dict)
    sources: Mapping[str, StrictStr] = Field(default_factory=dict)


_file = TypeAdapter(_TargetFile)


def load_all(folders: Sequence[Path]) -> dict[str, Target]:
    """A later folder overrides an earlier one."""
    return {path.stem: load(path) for folder in folders for path in sorted(folder.glob("*.toml"))}


def select(names: Sequence[str], folders: Sequence[Path]) -> tuple[Target, ...]:
    """Defaults to four targets. Raises UsageError."""
    by_name = load_all(folders)
    wanted = list(dict.fromkeys(part for name in names for part in name.split(",") if part)) or list(DEFAULT)
    if "all" in wanted:
        return tuple(by_name.values())
    unknown = [name for name in wanted if name not in by_name]
    if unknown:
        raise UsageError(
            f"there is no target {', '.join(unknown)}; the targets are {', '.join(by_name)}",
            hint=_hint(unknown[0], by_name),
        )
    return tuple(by_name[name] for name in wanted)


def _hint(name: str, names: Iterable[str]) -> str:
    near = get_close_matches(name, list(names), n=1)
    return f"did you mean {near[0]}?" if near else "a file NAME.toml in the folder of --targets-dir adds one"


def selected(names: Sequence[str], patterns: Sequence[str], folders: Sequence[Path]) -> tuple[Target, ...]:
    """If no target is named, a pattern may name any known one: `@sm_80`. Raises UsageError if the patterns
    match none.
    """
    chosen = select(names, folders)
    targets = [target for target in chosen if case_ids.may_select(patterns, target.name)]
    if not targets and not names:
        targets = [t for t in load_all(folders).values() if case_ids.may_select(patterns, t.name)]
    if not targets:
        wanted = case_ids.parse(patterns[0]).target
        hint = "--target leaves out what --case names" if names else _hint(wanted, load_all(folders))
        raise UsageError(f"no target of this comparison is {wanted!r}, as in --case {patterns[0]}", hint=hint)
    return tuple(targets)


def load(path: Path) -> Target:
    """Raises UsageError with the place of the mistake."""
    hint = "it needs backend, arch and warp_size; compare it with a target that irdiff ships"
    file = toml_file.checked(_file, toml_file.read(path), str(path), "a target file", hint=hint)
    return Target(**{**vars(file), "name": path.stem, "title": file.title or path.stem})
