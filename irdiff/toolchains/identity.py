"""What makes a toolchain what it is: the content of every file of it that can reach generated code.

The digest covers the whole `triton` package (Python, libtriton, ptxas, device libraries), the packages
of out-of-tree backends, and the version of the interpreter. Hashing a gigabyte takes a second, so the
digest of a file is kept under (path, inode, size, mtime, ctime): the kernel sets ctime whenever content
or metadata changes, and no program can set it back.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from irdiff import process
from irdiff.config import Config
from irdiff.errors import ToolchainError
from irdiff.model import Toolchain
from irdiff.store import Store, key_of
from irdiff.toolchains import answers

_BACKEND_FOLDER_SUFFIXES = (".pyc", ".pyo")


def identify(spec: str, python: str, path: Path, config: Config) -> Toolchain:
    """The identified toolchain of an interpreter. Raises ToolchainError where it has no working Triton."""
    if remembered := answers.known(python, config):
        reply, digest = remembered
        toolchain = _identified(reply, spec, python, path, config)
        if toolchain.digest == digest:
            return toolchain
    begin = answers.now()
    reply = _asked(spec, python, config)
    toolchain = _identified(reply, spec, python, path, config)
    answers.remember(python, config, reply, toolchain.digest, begin)
    return toolchain


def _asked(spec: str, python: str, config: Config) -> dict[str, Any]:
    try:
        return answers.ask(python, config)
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


def _identified(reply: dict[str, Any], spec: str, python: str, path: Path, config: Config) -> Toolchain:
    roots = sorted({Path(root).resolve() for root in (reply["root"], *reply["backend_roots"])})
    files = list(_files(roots))
    digests = _hash_all(files, config)
    rows = sorted((name, digests[file]) for name, file in files)
    ptxas = {file.name: digests[file] for _, file in files if file.name.startswith("ptxas")}
    return Toolchain(
        spec=spec,
        version=reply["triton"],
        digest=key_of("toolchain/1", reply["implementation"], reply["python"], rows),
        below_frontend={},
        path=str(path),
        python=python,
        ptxas=ptxas,
    )


def _files(roots: list[Path]) -> Iterator[tuple[str, Path]]:
    """(name within its root, file) of every file that counts; a backend inside triton counts once."""
    for root in roots:
        if any(other != root and other in root.parents for other in roots):
            continue
        for folder, folders, names in os.walk(root, followlinks=True):
            folders[:] = sorted(name for name in folders if name != "__pycache__")
            for name in sorted(names):
                if not name.endswith(_BACKEND_FOLDER_SUFFIXES):
                    path = Path(folder, name)
                    yield f"{root.name}/{path.relative_to(root)}", path


def _hash_all(files: list[tuple[str, Path]], config: Config) -> dict[Path, str]:
    store = Store(config.cache / "digests")
    paths = [path for _, path in files]
    state = {path: answers.state_of(path) for path in paths}
    key = key_of("files/1", sorted(str(path) for path in paths))
    known: dict[str, list[str]] = store.get_record("files", key) or {}
    digests = {path: known[str(path)][1] for path in paths if known.get(str(path), [""])[0] == state[path]}
    missing = [path for path in paths if path not in digests]
    if missing:
        with ThreadPoolExecutor(config.jobs) as pool:
            digests.update(zip(missing, pool.map(_hash_file, missing), strict=True))
        rows = {str(path): [state[path], digest] for path, digest in digests.items()}
        store.put_record("files", key, rows)
    return digests


def _hash_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def health_check(python: str, config: Config) -> None:
    """Raises ToolchainError unless Triton imports and lists a backend."""
    if not answers.ask(python, config)["backends"]:
        raise ToolchainError(f"Triton under {python} has no backends", hint="reinstall it")
