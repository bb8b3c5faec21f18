"""What makes a toolchain what it is: the content of every file that its worker has loaded or may load.

The worker names the files as it starts (`irdiff/worker/loaded.py`). All of them, with the interpreter that
runs them, make the one digest of the toolchain; no rule leaves any out.

Hashing a gigabyte takes a second, so the digest of a file is kept under (device, inode, size, mtime, ctime):
the kernel sets ctime whenever content or metadata changes, and no program can set it back.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from irdiff import process
from irdiff.config import Config
from irdiff.errors import ToolchainError
from irdiff.model import Toolchain
from irdiff.store import Store, key_of

WORKER = Path(__file__).parents[2] / "worker" / "__main__.py"
_GONE = "absent"
_LARGE_BYTES = 1 << 20
_MACHINE_CODE = b"\x7fELF"
_RUNTIME = re.compile(
    r"triton/(?:compiler/compiler\.py|runtime/(?:jit|autotuner|driver|build|_allocation)\.py"
    r"|backends/driver\.py|backends/[^/]+/(?:driver\.(?:py|c)|include/.+))"
    r"|package:[^/]+/(?:.+/)?driver\.(?:py|c)"
)
"""Files of Triton that run between `kernel[grid]` and the driver."""


def worker_command(python: str, operation: str) -> list[str]:
    # -s: no user site; the environment has no PYTHON* variables but the pinned ones.
    return [python, "-s", str(WORKER), operation]


def identify(spec: str, python: str, path: Path, config: Config) -> Toolchain:
    """The identified toolchain of an interpreter.

    Raises ToolchainError where it has no Triton that starts and lists a backend.
    """
    reply = _asked(spec, python, config)
    if not reply["backends"]:
        raise ToolchainError(f"{spec}: Triton under {python} has no backends", hint="reinstall it")
    files = {name: Path(place) for name, place in reply["files"].items()}
    programs = [Path(place) for place in reply["programs"]]
    digests = hash_files([*files.values(), *programs], config)
    rows = {name: digests[place] for name, place in files.items()}
    scripts = [place for place in programs if not _is_machine_code(place)]
    # a script may run anything: what such a toolchain makes is never taken for what another one made
    once = [uuid.uuid4().hex] if scripts else []
    interpreter = (reply["implementation"], reply["python"])
    return Toolchain(
        spec=spec,
        version=reply["triton"],
        digest=key_of("toolchain/3", interpreter, reply["startup"], rows, once),
        path=str(path),
        python=python,
        root=reply["root"],
        runtime={name: digest for name, digest in rows.items() if _RUNTIME.fullmatch(name)},
        programs={str(place.resolve()): digests[place] for place in programs if place not in scripts},
        notes=tuple(_notes(spec, scripts)),
    )


def _asked(spec: str, python: str, config: Config) -> dict[str, Any]:
    try:
        command = worker_command(python, "identify")
        answer = process.run(command, env=config.compiler_environment, timeout_s=120).splitlines()
        reply: dict[str, Any] = json.loads(answer[-1])
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


def _notes(spec: str, scripts: Sequence[Path]) -> Iterator[str]:
    for script in scripts:
        yield (
            f"{spec}: {script.name} is a script ({script}): nobody knows what it runs, so everything is "
            "compiled, and nothing is taken from the cache"
        )


def hash_files(paths: Sequence[Path], config: Config) -> dict[Path, str]:
    """SHA-256 of the content of files, `absent` for one that cannot be read."""
    store = Store(config.cache / "digests")
    states = {path: _state_of(path) for path in paths}
    key = key_of("files/2", sorted(str(path) for path in states))
    known: Mapping[str, list[str]] = store.get_record("files", key) or {}
    digests = {path: known[str(path)][1] for path in states if known.get(str(path), [""])[0] == states[path]}
    missing = [path for path in states if path not in digests]
    if missing:
        with ThreadPoolExecutor(config.jobs) as pool:
            hashed = pool.map(lambda path: _hash_file(path, states[path], store), missing)
            digests.update(zip(missing, hashed, strict=True))
        rows = {str(path): [states[path], digest] for path, digest in digests.items()}
        store.put_record("files", key, rows)
    return digests


def _hash_file(path: Path, state: str, store: Store) -> str:
    """A large file is known by its state alone: the toolchains of a hundred revisions link to one library."""
    is_large = state != _GONE and int(state.split(":")[2]) >= _LARGE_BYTES
    key = key_of("file/1", state)
    if is_large and (known := store.get_record("file", key)):
        return str(known)
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return _GONE
    if is_large:
        store.put_record("file", key, digest)
    return digest


def _state_of(path: Path) -> str:
    """Changes whenever the content of a file does."""
    try:
        found = os.stat(path)  # noqa: PTH116 - asked some thousand times
    except OSError:
        return _GONE
    return f"{found.st_dev}:{found.st_ino}:{found.st_size}:{found.st_mtime_ns}:{found.st_ctime_ns}"
