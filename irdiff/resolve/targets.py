"""Targets from `targets/NAME.toml`: adding a file adds a target."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path

from irdiff.errors import UsageError
from irdiff.model import Target

DEFAULT = ("sm_90", "sm_100", "gfx942", "gfx950")


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
    try:
        rows = tomllib.loads(path.read_text(encoding="utf-8"))
        target = Target(
            name=path.stem,
            backend=rows.pop("backend"),
            arch=rows.pop("arch"),
            warp_size=rows.pop("warp_size"),
            title=rows.pop("title", path.stem),
            facts=rows.pop("facts", {}),
            sources=rows.pop("sources", {}),
        )
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"target file {path} cannot be read: {error}") from error
    except KeyError as error:
        raise UsageError(
            f"target file {path} lacks {error}", hint="it needs backend, arch and warp_size; see the README"
        ) from error
    if rows:
        raise UsageError(f"target file {path} has unknown keys: {', '.join(rows)}")
    return target
