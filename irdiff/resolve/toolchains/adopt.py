"""Adoption: the declaration that a release's native part is the one of a revision.

Python-only work on top of the revision then needs no native build. It is kept by native digest, so that
every revision with the same native inputs profits from it.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from irdiff.config import Config
from irdiff.errors import ToolchainError
from irdiff.model import Toolchain
from irdiff.resolve.toolchains import checkout as checkouts
from irdiff.resolve.toolchains.checkout import Checkout

_MAX_LINES = 20


@dataclass(frozen=True, kw_only=True)
class Adoption:
    native_digest: str
    spec: str
    """The side whose native part it is: `triton==3.9.0`, `wheel:PATH`, `python:PATH`."""
    revision: str
    toolchain_digest: str
    python_files: tuple[str, ...]
    """The files of the installed package that are Python part, by their path in site-packages."""


def find(native_digest: str, config: Config) -> Adoption | None:
    path = _path(native_digest, config)
    try:
        row = json.loads(path.read_text(encoding="utf-8"))
        return Adoption(**{**row, "python_files": tuple(row["python_files"])})
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise ToolchainError(
            f"the adoption at {path} is damaged: {error}", hint="remove the file and adopt again"
        ) from error


def adopt(
    checkout: Checkout, spec: str, toolchain: Toolchain, config: Config, *, anyway: bool
) -> tuple[Adoption, list[str]]:
    """The adoption, and how the Python parts differ. Raises ToolchainError where they do, unless `anyway`.

    Python files must be on both sides; other files may be on one.
    """
    site = Path(toolchain.root).parent
    installed = checkouts.installed_files(site)
    part = checkout.python_part(installed)
    only_installed = {name for name in installed - part.keys() if name.endswith(".py") and "/_C/" not in name}
    found = {
        "differs": {name for name in part.keys() & installed if _blob(site / name) != part[name].blob},
        "only in the revision": {name for name in part.keys() - installed if name.endswith(".py")},
        "only in the package": only_installed,
    }
    lines = [f"{what}: {name}" for what, names in found.items() for name in sorted(names)]
    if lines and not anyway:
        more = [f"… and {len(lines) - _MAX_LINES} more"] if len(lines) > _MAX_LINES else []
        raise ToolchainError(
            f"{spec} is not {checkout.label}: {len(lines)} files of their Python parts do not agree\n"
            + "\n".join(f"  {line}" for line in [*lines[:_MAX_LINES], *more]),
            hint="adopt the revision that it was made from; --anyway takes its native part all the same",
        )
    adoption = Adoption(
        native_digest=checkout.native_digest,
        spec=spec,
        revision=checkout.snapshot.commit or checkout.snapshot.tree,
        toolchain_digest=toolchain.digest,
        python_files=tuple(sorted((part.keys() & installed) | only_installed)),
    )
    path = _path(checkout.native_digest, config)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".part")
    partial.write_text(json.dumps(asdict(adoption), indent=1), encoding="utf-8")
    partial.replace(path)
    return adoption, lines


def _blob(path: Path) -> str:
    """Git's name of a file's content."""
    content = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _path(native_digest: str, config: Config) -> Path:
    return config.cache / "adoptions" / f"{native_digest[:32]}.json"
