"""Reads the text of a launch's kernel from the corpus, and remembers where the corpus lies."""

from __future__ import annotations

import ast
import contextlib
import functools
import re
from pathlib import Path

from irdiff.config import Config
from irdiff.model import Launch
from irdiff.resolve.corpus import Corpus

_DIGEST = re.compile(r"[0-9a-f]{64}")
"""A run folder is not trusted: nothing else becomes part of a path."""


def source_of(corpus: Corpus, launch: Launch) -> str:
    """Omits decorators; empty if the launch's file is not part of the corpus."""
    path = corpus.root / launch.source_path
    if Path(launch.source_path).is_absolute() or not path.is_file():
        return ""
    return _functions(path).get(launch.kernel, "")


def keep_root(corpus: Corpus, config: Config) -> None:
    place = _place(corpus.digest, config)
    if corpus.kept is None or place.is_symlink():
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):  # another process was first
        place.symlink_to(corpus.kept)


def root_of(digest: str, config: Config) -> Path | None:
    """Returns None if the files are not on this machine, or not any more."""
    place = _place(digest, config)
    return place.resolve() if _DIGEST.fullmatch(digest) and place.is_dir() else None


def _place(digest: str, config: Config) -> Path:
    return config.cache.resolve() / "exports" / "roots" / digest


@functools.lru_cache(maxsize=256)
def _functions(path: Path) -> dict[str, str]:
    try:
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
    except (OSError, SyntaxError, ValueError):
        return {}
    functions = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            docstring = ast.get_docstring(node)
            node.decorator_list = []
            if docstring is not None and len(node.body) > 1:
                node.body = node.body[1:]
            functions[node.name] = ast.unparse(node)
    return functions
