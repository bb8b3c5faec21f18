"""The text of a launch's kernel, read from the corpus that launches it."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

from irdiff.model import Launch
from irdiff.resolve.corpus import Corpus


def source_of(corpus: Corpus, launch: Launch) -> str:
    """The kernel's function, without decorators; empty where its file is not part of the corpus."""
    path = corpus.root / launch.source_path
    if Path(launch.source_path).is_absolute() or not path.is_file():
        return ""
    return _functions(path).get(launch.kernel, "")


@functools.lru_cache(maxsize=256)
def _functions(path: Path) -> dict[str, str]:
    try:
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
    except (OSError, SyntaxError, ValueError):
        return {}
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            docstring = ast.get_docstring(node)
            node.decorator_list = []
            if docstring is not None and len(node.body) > 1:
                node.body = node.body[1:]
            found[node.name] = ast.unparse(node)
    return found
