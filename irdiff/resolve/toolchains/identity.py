"""What makes a toolchain what it is: the content of every file that its worker can load.

`loaded.py` lists the files, from what the interpreter says that it has loaded. All of them make the digest
of the toolchain. Without those of the frontend, of launchers and of backends that do not take part they
make the digest of what lies below the frontend, one for each name of a backend that targets have, as far as
`proof.py` proves that nothing else takes part.

Hashing a gigabyte takes a second, so the digest of a file is kept under (device, inode, size, mtime, ctime):
the kernel sets ctime whenever content or metadata changes, and no program can set it back.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from irdiff import process
from irdiff.config import Config
from irdiff.errors import ToolchainError
from irdiff.model import Toolchain
from irdiff.resolve.toolchains import interpreter_answers, layers, loaded, programs, proof, references
from irdiff.resolve.toolchains.layers import LayerKind
from irdiff.resolve.toolchains.loaded import CountedFile, Loaded
from irdiff.store import Store, key_of, sha256

_GONE = "absent"
_LARGE_BYTES = 1 << 20
_RULES = (layers, references, proof)
_VERSIONED = "triton/__init__.py"
_VERSION_LINE = re.compile(rb"^__version__ = ['\"][^'\"]*['\"]$", re.MULTILINE)
_VERSION_READ = re.compile(rb"__version__|triton_version")
"""The latter is what the metadata have it under."""


def identify(spec: str, python: str, path: Path, config: Config) -> Toolchain:
    """The identified toolchain of an interpreter.

    Raises ToolchainError where it has no Triton that starts and lists a backend.
    """
    if remembered := interpreter_answers.known(python, config):
        reply, digest = remembered
        toolchain = _identified(reply, spec, python, path, config)
        if toolchain.digest == digest:
            return toolchain
    begin = interpreter_answers.now()
    reply = _asked(spec, python, config)
    if not reply["backends"]:
        raise ToolchainError(f"{spec}: Triton under {python} has no backends", hint="reinstall it")
    toolchain = _identified(reply, spec, python, path, config)
    interpreter_answers.remember(python, config, reply, toolchain.digest, begin)
    return toolchain


def _asked(spec: str, python: str, config: Config) -> dict[str, Any]:
    try:
        return interpreter_answers.ask(python, config)
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


@dataclass(frozen=True, kw_only=True)
class _Counted:
    """Everything that counts, hashed."""

    found: Loaded
    files: tuple[CountedFile, ...]
    digests: Mapping[Path, str]
    interpreter: tuple[str, ...]

    def rows(self, files: Iterable[CountedFile]) -> list[tuple[str, str]]:
        return sorted((file.name, self.digests[file.path]) for file in files)

    def digest(self, files: Iterable[CountedFile]) -> str:
        """The digest of some of the files, with the interpreter that runs them."""
        return key_of("toolchain/2", self.interpreter, self.found.startup, self.rows(files))

    def below_digest(self, target: str) -> str:
        """The digest of what takes part in compiling for such targets: files, and what imports have set."""
        values = self.found.values_below(target)
        return key_of("below/1", self.digest(self.below(target)), values)

    def below(self, target: str) -> list[CountedFile]:
        """The files that take part in compiling IR for targets whose backend has this name."""
        keys = self.found.keys_for(target)
        return [
            file
            for file in self.files
            if file.layer.kind is LayerKind.COMMON
            or (file.layer.kind is LayerKind.BACKEND and file.layer.backend in keys)
        ]

    def stage_code(self, target: str) -> str:
        """The digest of the Python among them: it says what is done with what an assembler made.

        Without the number of the release, which patch releases alone differ in, unless a backend asks for it.
        """
        files = [file for file in self.below(target) if file.module]
        own = (file.path for file in files if file.layer.kind is LayerKind.BACKEND)
        asks = any(_VERSION_READ.search(path.read_bytes()) for path in own)
        rows = dict(self.rows(files))
        for file in files:
            if file.name == _VERSIONED and not asks:
                rows[file.name] = sha256(_VERSION_LINE.sub(b"", file.path.read_bytes()))
        values = self.found.values_below(target)
        return key_of("stages/2", self.interpreter, self.found.startup, sorted(rows.items()), values)

    def launcher_digest(self, target: str) -> str:
        """The digest of what launches on such targets, and of no more: it is only said where it differs."""
        keys = self.found.keys_for(target)
        launching = (
            file
            for file in self.files
            if file.name in layers.SHARED_LAUNCHING
            or (file.layer.kind is LayerKind.LAUNCHER and file.layer.backend in keys)
        )
        return key_of("launcher/1", self.rows(launching))


def _identified(reply: dict[str, Any], spec: str, python: str, path: Path, config: Config) -> Toolchain:
    found = Loaded(reply)
    run = programs.find_programs(found.files)
    files = (*found.files, *run.named)
    counted = _Counted(
        found=found,
        files=files,
        digests=hash_files([file.path for file in files], config),
        interpreter=(reply["implementation"], reply["python"]),
    )
    digest = counted.digest(files)
    leaks = {target: _violations(counted, target, digest, config) for target in found.targets}
    return Toolchain(
        spec=spec,
        version=reply["triton"],
        digest=digest,
        path=str(path),
        python=python,
        below_frontend={
            target: digest if leaks[target] else counted.below_digest(target) for target in leaks
        },
        launchers={target: counted.launcher_digest(target) for target in leaks},
        programs={str(file.path.resolve()): counted.digests[file.path] for file in run.files},
        notes=tuple(_notes(spec, found, leaks, run.scripts)),
        stage_code={target: digest if leaks[target] else counted.stage_code(target) for target in leaks},
    )


def _violations(counted: _Counted, target: str, digest: str, config: Config) -> list[str]:
    """Why the rule of `layers` does not hold for a target. The answer is kept by the toolchain's digest."""
    if held := counted.found.held:
        return held
    store = Store(config.cache / "digests")
    rules = [Path(str(module.__file__)).read_text(encoding="utf-8") for module in _RULES]
    key = key_of("proof/1", rules, digest, target)
    violations: list[str] | None = store.get_record("proof", key)
    if violations is None:
        violations = _prove(counted, target)
        store.put_record("proof", key, violations)
    return violations


def _prove(counted: _Counted, target: str) -> list[str]:
    paths = {file.name: file.path for file in counted.files}
    below = counted.below(target)
    allowed: Collection[str] = {file.name for file in below}
    if proof.DRIVING_FILE not in allowed:
        return [f"there is no {proof.DRIVING_FILE}"]
    outside = [file.name for file in below if file.name.startswith("module:")]
    own = [file.name for file in below if file.layer.kind is LayerKind.BACKEND]
    proved = proof.Proof(loaded.python_files(counted.files), lambda name: paths[name].read_bytes())
    return proved.violations([proof.DRIVING_FILE, *own, *outside], allowed)


def _notes(
    spec: str, found: Loaded, leaks: Mapping[str, list[str]], scripts: Iterable[CountedFile]
) -> Iterable[str]:
    for target, violations in leaks.items():
        if violations:
            more = f" (and {len(violations) - 1} more)" if len(violations) > 1 else ""
            yield (
                f"{spec}: for {target} every change of the toolchain counts as one of its compiler, "
                f"as {violations[0]}{more}"
            )
    for backend in found.undeclared:
        yield f"{spec}: the backend {backend} does not show which targets it supports: it counts for all"
    for script in scripts:
        yield (
            f"{spec}: {script.path.name} is a script ({script.path}): what it runs is known only as far as "
            "the script names it, and no machine code is the same by rule"
        )


def hash_files(paths: list[Path], config: Config) -> dict[Path, str]:
    """SHA-256 of the content of files, `absent` for one that cannot be read."""
    store = Store(config.cache / "digests")
    states = {path: _state_of(path) for path in paths}
    key = key_of("files/2", sorted(str(path) for path in states))
    known: dict[str, list[str]] = store.get_record("files", key) or {}
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
    try:
        return interpreter_answers.state_of(path)
    except OSError:
        return _GONE
