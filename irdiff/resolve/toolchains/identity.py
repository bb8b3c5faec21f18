"""Computes the digest of a toolchain, which covers every file that its worker has loaded or may load.

The worker names the files as it starts (`irdiff/worker/loaded.py`). All of them, with the interpreter, form
the one digest of the toolchain; no rule leaves any out. Variables that the worker finds and that irdiff did
not set, and switches of its interpreter, count too: a script that starts it, or a `.pth` file, may set them.
Each worker reports again what it finds, and is not used if its environment differs.

Hashing a gigabyte takes a second, so the digest of a file is kept under (device, inode, size, mtime, ctime):
the kernel sets ctime whenever content or metadata changes, and no program can set it back.
"""

from __future__ import annotations

import json
import os
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from irdiff import process
from irdiff.config import Config
from irdiff.errors import ToolchainError
from irdiff.model import RuntimeFile, Toolchain
from irdiff.resolve import settings
from irdiff.resolve.toolchains import environments
from irdiff.resolve.toolchains.environments import Environment
from irdiff.store import Store, key_of, sha256, sha256_of_file

WORKER = Path(__file__).parents[2] / "worker" / "__main__.py"
_OF_SHELLS = frozenset({"_", "OLDPWD", "PWD", "SHLVL"})
"""A shell sets them, wherever it is started."""
_GONE = "absent"
_MACHINE_CODE = b"\x7fELF"
_COMPILE_ONLY = re.compile(
    r"triton/(?:_C/libtriton.*|include/.+|(?:plugins|instrumentation|language|experimental/gluon/language)/.+"
    r"|FileCheck|compiler/(?:code_generator|errors)\.py|backends/compiler\.py"
    r"|backends/[^/]+/(?:compiler\.py|bin/.+|lib/[^/]+|codegen/.+))"
    r"|package:[^/]+/(?:.+/)?compiler\.py|(?:library|program|record):.+|interpreter|.+\.(?:pyi|md)"
)
"""Files that only generate code: differences in them are compared as code. All others, and new files of later
releases, may run between `kernel[grid]` and the driver.
"""


def worker_code() -> str:
    """Returns the digest of the worker's own code, which is part of every key of what a worker made."""
    files = sorted(WORKER.parent.rglob("*.py"))
    return key_of([(str(path.relative_to(WORKER.parent)), sha256(path.read_bytes())) for path in files])


def worker_command(python: str, operation: str) -> list[str]:
    # -s: no user site; the environment has no PYTHON* variables but the pinned ones.
    return [python, "-s", str(WORKER), operation]


def identify(
    spec: str, python: str, path: Path, config: Config, chosen: Mapping[str, str] | None = None
) -> Toolchain:
    """spec: the user's name for the toolchain, without settings. chosen: the user's settings. Raises
    ToolchainError if the interpreter has no Triton that starts and lists a backend, UsageError for a setting
    that it does not know.
    """
    chosen = chosen or {}
    spec += settings.suffix(chosen)
    environment = {**config.compiler_environment, **settings.environment(chosen)}
    reply = _ask_worker(spec, python, environment)
    if not reply["backends"]:
        raise ToolchainError(f"{spec}: Triton under {python} has no backends", hint="reinstall it")
    files = {name: Path(place) for name, place in reply["files"].items()}
    programs = [Path(place) for place in reply["programs"]]
    settings.check(spec, chosen, reply, [*files.values(), *programs])
    digests = hash_files([*files.values(), *programs], config)
    digest_by_name = {name: digests[place] for name, place in files.items()}
    scripts = [place for place in programs if not _is_machine_code(place)]
    # a script may run anything: what such a toolchain makes is never taken for what another one made
    once: list[object] = [uuid.uuid4().hex] if scripts else []
    variables = own_variables(reply["environment"], environment)
    once += settings.digests(chosen)
    once += [variables, reply["switches"]] if variables or reply["switches"] else []
    interpreter = (reply["implementation"], reply["python"])
    return Toolchain(
        spec=spec,
        version=reply["triton"],
        digest=key_of("toolchain/3", interpreter, reply["startup"], digest_by_name, once),
        path=str(path),
        python=python,
        root=reply["root"],
        runtime={
            name: RuntimeFile(digest, str(files[name]))
            for name, digest in digest_by_name.items()
            if not _COMPILE_ONLY.fullmatch(name)
        },
        variables=variables,
        settings=chosen,
        defaults=_defaults(reply),
        programs={str(place.resolve()): digests[place] for place in programs if place not in scripts},
        notes=tuple(
            f"{spec}: {why}, so everything is compiled, and nothing is taken from the cache"
            for why in (
                *(f"{script.name} is a script ({script}): nobody knows what it runs" for script in scripts),
                *(f"nobody knows what is read where {name} points to" for name in settings.unread(chosen)),
            )
        ),
    )


def configured(toolchain: Toolchain, chosen: Mapping[str, str], config: Config) -> Toolchain:
    """Adds a user's settings to a toolchain. Raises ToolchainError, UsageError."""
    if not chosen:
        return toolchain
    plain, own = settings.split(toolchain.spec)
    return identify(plain, toolchain.python, Path(toolchain.path), config, {**own, **chosen})


def _defaults(reply: Mapping[str, Any]) -> dict[str, str]:
    """Returns {setting: its default}: knobs by their variables, options by their backend."""
    options = (
        (f"{backend}'s {name}", default)
        for backend, defaults in reply["options"].items()
        for name, (_, default) in defaults.items()
    )
    defaults = [*((name, value) for name, (_, value) in reply["knobs"].items()), *options]
    return {name: str(value) for name, value in defaults if value is not None}


def own_variables(environment: Mapping[str, str], variables: Mapping[str, str]) -> dict[str, str]:
    """Returns variables of a worker that irdiff did not set; the value is empty if a variable is gone."""
    names = sorted({*environment, *variables} - _OF_SHELLS)
    return {name: environment.get(name, "") for name in names if environment.get(name) != variables.get(name)}


def make_environment(
    spec: str, name: str, config: Config, fill: Callable[[Path, Path], Mapping[str, object]]
) -> Environment:
    """Fills a missing environment by `fill(path, log)`, whose result is kept in its state. Raises
    ToolchainError, UsageError.
    """

    def install(path: Path, log: Path) -> dict[str, Any]:
        more = fill(path, log)
        identity = identify(spec, environments.python_of(path), path, config)
        return {"spec": spec, "version": identity.version, "digest": identity.digest, **more}

    return environments.make(name, config, install)


def _ask_worker(spec: str, python: str, environment: Mapping[str, str]) -> dict[str, Any]:
    try:
        command = worker_command(python, "identify")
        lines = process.run(command, env=environment, timeout_s=120).splitlines()
        reply: dict[str, Any] = json.loads(lines[-1])
    except (process.CommandFailed, OSError, ValueError, IndexError) as error:
        text = error.tail(3) if isinstance(error, process.CommandFailed) else str(error)
        if "No module named 'triton'" in text:
            raise ToolchainError(
                f"{spec}: the interpreter {python} has no Triton",
                hint=f"install it there (`{python} -m pip install triton`), or use a release: triton==3.9.0",
            ) from error
        raise ToolchainError(
            f"{spec}: Triton does not start under {python}:\n{text}",
            hint=f"try `{python} -c 'import triton'`",
        ) from error
    return reply


def _is_machine_code(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_MACHINE_CODE)) == _MACHINE_CODE


def hash_files(paths: Sequence[Path], config: Config) -> dict[Path, str]:
    """Returns the SHA-256 of each file, or `absent` if it cannot be read."""
    store = Store(config.cache / "digests")
    states = {path: _state_of(path) for path in paths}
    cached = {path: store.get_record("file", state) for path, state in states.items()}
    missing = [path for path, digest in cached.items() if digest is None]
    with ThreadPoolExecutor(config.jobs) as pool:
        hashed = dict(zip(missing, pool.map(_hash_file, missing), strict=True))
    records = {
        ("file", states[path]): json.dumps(digest) for path, digest in hashed.items() if digest != _GONE
    }
    if records:
        store.add(records, {}, replace=True)
    return {path: cached[path] or hashed[path] for path in states}


def _hash_file(path: Path) -> str:
    try:
        return sha256_of_file(path)
    except OSError:
        return _GONE


def _state_of(path: Path) -> str:
    """Changes whenever the content of a file does."""
    try:
        status = os.stat(path)  # noqa: PTH116 - asked some thousand times
    except OSError:
        return _GONE
    return f"{status.st_dev}:{status.st_ino}:{status.st_size}:{status.st_mtime_ns}:{status.st_ctime_ns}"
