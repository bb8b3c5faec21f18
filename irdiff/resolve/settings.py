"""Settings of a side: what a user gives its compiler on purpose, as in `triton==3.9.0+NAME=VALUE`.

    triton==3.9.0+TRITON_DEFAULT_FP_FUSION=0    upper case: a variable of the compiler's environment
    triton==3.9.0+num_warps=8                   lower case: an option of every launch that knows it

Settings are part of the toolchain: of its name, its digest and so of every key. A variable counts with the
content of the file that it names. If it names a folder, or a file within a longer value, nobody knows what is
read there, so results of such a side never come from the cache.
"""

from __future__ import annotations

import difflib
import json
import mmap
import re
import uuid
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from irdiff.config import OF_COMPILERS, PINNED_ENVIRONMENT
from irdiff.errors import UsageError
from irdiff.model import Sides, Toolchain
from irdiff.store import sha256_of_file

_BEGINS = re.compile(r"\+(?=[A-Za-z_][A-Za-z0-9_]*=)")
_LOOKS_LIKE_ONE = re.compile(r"\+([A-Z][A-Z0-9]*_[A-Z0-9_]*|num_\w+)$")
_VARIABLE = re.compile(rf"\b(?:{OF_COMPILERS}|DISABLE)_[A-Z0-9]+(?:_[A-Z0-9]+)*\b".encode())
"""Names of compilers' variables, for a hint."""
_LAUNCH_OPTIONS = "IRDIFF_LAUNCH_OPTIONS"
_SHOWN = 3
_ALIKE = 0.7
"""The least similarity of a suggested name, as `difflib` measures it."""


def split(spec: str) -> tuple[str, dict[str, str]]:
    """Returns the side without its settings, and the settings. Raises UsageError."""
    plain, *parts = _BEGINS.split(spec)
    if near := _LOOKS_LIKE_ONE.search(plain):
        raise UsageError(f"{spec}: {near[1]} has no value", hint=f"{plain}=1, or another value")
    settings: dict[str, str] = {}
    for part in parts:
        name, _, value = part.partition("=")
        if name in settings:
            raise UsageError(f"{spec}: {name} is set twice", hint="leave one of them out")
        if name in PINNED_ENVIRONMENT:
            raise UsageError(
                f"{spec}: irdiff sets {name} itself, so that compilations repeat", hint="leave it out"
            )
        if not name.isupper() and not name.islower():
            raise UsageError(
                f"{spec}: {name} is neither a variable (upper case) nor an option of launches (lower case)",
                hint="triton==3.9.0+TRITON_DEFAULT_FP_FUSION=0 or triton==3.9.0+num_warps=8",
            )
        settings[name] = value
    return plain, settings


def both(specs: Sides[str]) -> Sides[str]:
    """Expands a head that is only settings to the base with these settings. Raises UsageError."""
    if not specs.head.startswith("+"):
        return specs
    plain, settings = split(specs.head)
    if plain or not settings:
        raise UsageError(
            f"{specs.head}: settings are +NAME=VALUE", hint=f"irdiff compare {specs.base} +NAME=1"
        )
    return Sides(base=specs.base, head=specs.base + specs.head)


def suffix(settings: Mapping[str, str]) -> str:
    return "".join(f"+{name}={value}" for name, value in settings.items())


def environment(settings: Mapping[str, str]) -> dict[str, str]:
    """Returns the variables that pass the settings to a worker."""
    variables = {name: value for name, value in settings.items() if name.isupper()}
    options = {name: value_of(value) for name, value in settings.items() if name.islower()}
    return {**variables, **({_LAUNCH_OPTIONS: json.dumps(options)} if options else {})}


def value_of(value: str) -> bool | int | float | str:
    try:
        parsed = json.loads(value.lower())
    except ValueError:
        return value
    return parsed if isinstance(parsed, (bool, int, float)) else value


def digests(settings: Mapping[str, str]) -> list[object]:
    """Returns the parts of a toolchain's digest for its settings."""
    parts: list[object] = []
    for name, value in sorted(settings.items()):
        path = Path(value)
        if name.isupper() and "/" in value:
            parts.append((name, value, sha256_of_file(path) if path.is_file() else uuid.uuid4().hex))
        else:
            parts.append((name, value))
    return parts


def unread(settings: Mapping[str, str]) -> list[str]:
    """Lists variables whose value holds a path but is no file: nobody knows what is read there."""
    return [
        name
        for name, value in settings.items()
        if name.isupper() and "/" in value and not Path(value).is_file()
    ]


# what a release knows


def check(spec: str, settings: Mapping[str, str], reply: Mapping[str, Any], files: Iterable[Path]) -> None:
    """Raises UsageError for a name that this toolchain never reads, or a value that it does not accept.

    reply: the worker's reply to `identify`. files: everything that it can load or run.
    """
    options = {
        name: kind
        for options_of_backend in reply["options"].values()
        for name, (kind, _) in options_of_backend.items()
    }
    for name, value in settings.items():
        if name.islower():
            if name not in options:
                raise _unknown(spec, name, options, _variables(reply, files))
            _check_value(spec, name, value, options[name])
        elif name in reply["knobs"]:
            _check_value(spec, name, value, reply["knobs"][name][0])
        elif not any(_mentions(path, name.encode()) for path in files):
            raise _unknown(spec, name, options, _variables(reply, files))


def _check_value(spec: str, name: str, value: str, kind: str) -> None:
    number = value_of(value)
    right = {
        "bool": value.lower() in ("0", "1", "true", "false", "on", "off", "yes", "no", "y", "n"),
        "int": isinstance(number, int) and not isinstance(number, bool),
        "float": isinstance(number, (int, float)) and not isinstance(number, bool),
    }
    if not right.get(kind, True):
        words, example = {
            "bool": ("0 or 1", "0"),
            "int": ("a whole number", "8"),
            "float": ("a number", "0.5"),
        }[kind]
        raise UsageError(f"{spec}: {name} takes {words}, not {value!r}", hint=f"+{name}={example}")


def _unknown(spec: str, name: str, options: Iterable[str], variables: Iterable[str]) -> UsageError:
    """Suggests names that are written alike, whatever their case: upper case names a variable."""
    plain = split(spec)[0]
    what = (
        f"{plain} has no launch option called {name}"
        if name.islower()
        else f"no file of {plain} reads an environment variable called {name}"
    )
    names = {each.lower(): each for each in (*sorted(options), *sorted(variables))}
    close = difflib.get_close_matches(name.lower(), names, _SHOWN, _ALIKE)
    if close:
        return UsageError(f"{spec}: {what}", hint=f"did you mean {_or(names[each] for each in close)}?")
    return UsageError(
        f"{spec}: {what}",
        hint="a name in upper case is an environment variable of the compiler, "
        "one in lower case an option of every launch, such as num_warps",
    )


def _or(names: Iterable[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} or {last}" if first else last


def _variables(reply: Mapping[str, Any], files: Iterable[Path]) -> set[str]:
    named = {
        name.decode()
        for path in files
        if path.suffix == ".py"
        for name in _VARIABLE.findall(path.read_bytes())
    }
    return named | set(reply["knobs"])


def _mentions(path: Path, name: bytes) -> bool:
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return content.find(name) >= 0
    except (OSError, ValueError):  # empty or gone
        return False


def notes(toolchains: Sides[Toolchain], idle: Collection[str]) -> list[str]:
    """Lists the defaults that differ between two compilers with the same settings. Options of `idle`
    backends, which no target needs, are left out: `amd's waves_per_eu`.
    """
    base, head = toolchains
    if (base.settings, base.variables) != (head.settings, head.variables):
        return []
    changed = [
        f"{name} {base.defaults[name] or 'nothing'} -> {head.defaults[name] or 'nothing'}"
        for name in sorted(base.defaults.keys() & head.defaults.keys() - base.settings.keys())
        if base.defaults[name] != head.defaults[name] and name.partition("'s ")[0] not in idle
    ]
    return [f"defaults that changed between the compilers: {', '.join(changed)}"] if changed else []
