"""The versions that a repository pins, and the environment that its users work in.

uv.lock, pylock.toml, poetry.lock, pdm.lock, requirements.txt     versions of a revision
.venv                                                             an interpreter of the working tree
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

FILES = ("uv.lock", "pylock.toml", "poetry.lock", "pdm.lock", "requirements.lock", "requirements.txt")
ENVIRONMENT = ".venv"


def version(name: str, content: bytes, package: str = "triton") -> str | None:
    """The exact version of a package that a lock or requirements file names."""
    text = content.decode(errors="replace")
    if name.endswith((".lock", ".toml")):
        try:
            table = tomllib.loads(text)
        except tomllib.TOMLDecodeError:
            table = {}
        locked = _locked(table, package)
        if locked:
            return locked
    spelled = re.escape(package).replace(r"\-", "[-_.]")
    pinned = rf"^(?!\s*#).*?(?<![\w.-]){spelled}\s*==\s*([0-9][\w.!+-]*)"
    found = re.search(pinned, text, re.MULTILINE)
    return found[1] if found else None


def _locked(table: Mapping[str, object], package: str) -> str | None:
    """`[[package]]` of uv, poetry and pdm, `[[packages]]` of pylock.toml (PEP 751)."""
    rows = table.get("package") or table.get("packages")
    for row in rows if isinstance(rows, list) else []:
        if isinstance(row, dict) and row.get("name") == package and isinstance(row.get("version"), str):
            return str(row["version"])
    return None


def interpreter(root: Path | None) -> Path | None:
    """That of the environment which a project has in its folder."""
    python = root / ENVIRONMENT / "bin" / "python" if root else None
    return python if python and python.is_file() else None


def installed(root: Path, package: str) -> str | None:
    """The version of a package in that environment."""
    spelled = package.replace("-", "_")
    found = sorted((root / ENVIRONMENT).glob(f"lib/python*/site-packages/{spelled}-*.dist-info"))
    return found[0].name.removesuffix(".dist-info").rpartition("-")[2] if found else None
