"""What an interpreter says of its Triton, asked once: starting it and importing triton takes half a second.

An answer is used again as long as nothing has changed that it was made from: the interpreter, the folders
on its search path with every file that lies directly in them (`.pth` files, finders of editable packages),
the entry points of the packages there (they name the backends), the folders of the libraries that were mapped
(a link there may lead to another one), the loader's cache of them, and, by the digest that the answer led to,
the content of triton and its backends. States are (inode, size, mtime, ctime), as for digests of files.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from irdiff import process
from irdiff.config import Config
from irdiff.store import Store, key_of

WORKER = Path(__file__).parents[2] / "worker" / "__main__.py"
_ASKED = (WORKER, WORKER.parent / "loaded.py", WORKER.parent / "settings.py")
"""What the answer comes from, beside the interpreter."""
_LOADER_CACHE = Path("/etc/ld.so.cache")


def worker_command(python: str, operation: str) -> list[str]:
    # -s: no user site; the environment has no PYTHON* variables but the pinned ones.
    return [python, "-s", str(WORKER), operation]


def ask(python: str, config: Config) -> dict[str, Any]:
    """What the interpreter says of its Triton. Raises CommandFailed, OSError."""
    answer = process.run(
        worker_command(python, "identify"), env=config.compiler_environment, timeout_s=120
    ).splitlines()
    reply: dict[str, Any] = json.loads(answer[-1])
    return reply


def state_of(path: Path) -> str:
    """Changes whenever the content of a file, or the list of what is in a folder, does."""
    stat = path.stat()
    return f"{stat.st_dev}:{stat.st_ino}:{stat.st_size}:{stat.st_mtime_ns}:{stat.st_ctime_ns}"


def known(python: str, config: Config) -> tuple[dict[str, Any], str] | None:
    """An earlier answer that still holds, and the toolchain digest that must come of it again."""
    row = _store(config).get_record("answers", _key(python, config))
    if row is None or row["states"] != _states(python, row["reply"]):
        return None
    return row["reply"], row["digest"]


def remember(python: str, config: Config, reply: dict[str, Any], digest: str, asked_at: float) -> None:
    """Keeps an answer, unless something that it depends on was touched since `asked_at` (seconds), or the
    loader looks for libraries in folders of the user's: one that appears there takes another's place.
    """
    if config.compiler_environment.get("LD_LIBRARY_PATH"):
        return
    states = _states(python, reply)
    newest_ns = max(int(state.rsplit(":", 1)[1]) for state in states.values())
    if newest_ns < (asked_at - 1) * 1e9:
        row = {"reply": reply, "digest": digest, "states": states}
        _store(config).put_record("answers", _key(python, config), row)


def now() -> float:
    """Seconds on the clock that file times are taken from."""
    return time.time()


def _store(config: Config) -> Store:
    return Store(config.cache / "digests")


def _key(python: str, config: Config) -> str:
    return key_of("answers/3", python, [*map(state_of, _ASKED)], dict(config.compiler_environment))


def _states(python: str, reply: dict[str, Any]) -> dict[str, str]:
    found = {}
    depended_on = _depended_on(Path(python), [Path(entry) for entry in reply["search_path"]])
    folders = {Path(library).parent for library in reply["libraries"]}
    for path in (*depended_on, *sorted(folders), _LOADER_CACHE):
        try:
            found[str(path)] = state_of(path)
        except OSError:
            found[str(path)] = "absent:0"
    return found


def _depended_on(python: Path, search_path: list[Path]) -> Iterator[Path]:
    yield from (python, python.resolve(), python.parent.parent / "pyvenv.cfg")
    for folder in search_path:
        yield folder
        try:
            entries = list(os.scandir(folder))
        except OSError:
            continue
        for entry in entries:
            if entry.is_file():
                yield Path(entry.path)
            elif entry.name.endswith((".dist-info", ".egg-info")):
                yield Path(entry.path, "entry_points.txt")
