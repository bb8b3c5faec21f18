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


@dataclass(frozen=True, kw_only=True)
class Adoption:
    native_digest: str
    spec: str
    """The side whose native part it is: `triton==3.9.0`, `wheel:PATH`, `python:PATH`."""
    revision: str
    toolchain_digest: str
    python_files: tuple[str, ...]
    """The files of the installed package that are Python part, by their path in site-packages."""


@dataclass(frozen=True, kw_only=True)
class Disagreement:
    """How the Python parts of a revision and of an installed package differ."""

    differing: tuple[str, ...]
    only_revision: tuple[str, ...]
    only_installed: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.differing or self.only_revision or self.only_installed)

    def lines(self) -> list[str]:
        rows = [f"differs: {name}" for name in self.differing]
        rows += [f"only in the revision: {name}" for name in self.only_revision]
        return rows + [f"only in the package: {name}" for name in self.only_installed]


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
) -> tuple[Adoption, Disagreement]:
    """Declares the adoption. Raises ToolchainError where the Python parts disagree, unless `anyway`."""
    site = Path(toolchain.root).parent
    installed = checkouts.installed_files(site)
    differences = compare(checkout, site, installed)
    if differences and not anyway:
        lines = differences.lines()
        more = [f"… and {len(lines) - 20} more"] if len(lines) > 20 else []
        raise ToolchainError(
            f"{spec} is not {checkout.label}: {len(lines)} files of their Python parts do not agree\n"
            + "\n".join(f"  {line}" for line in [*lines[:20], *more]),
            hint="adopt the revision that it was made from; --anyway takes its native part all the same",
        )
    part = checkout.python_part(installed)
    adoption = Adoption(
        native_digest=checkout.native_digest,
        spec=spec,
        revision=checkout.snapshot.commit or checkout.snapshot.tree,
        toolchain_digest=toolchain.digest,
        python_files=tuple(sorted((set(part) & installed) | set(differences.only_installed))),
    )
    path = _path(checkout.native_digest, config)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".part")
    partial.write_text(json.dumps(asdict(adoption), indent=1), encoding="utf-8")
    partial.replace(path)
    return adoption, differences


def compare(checkout: Checkout, site: Path, installed: set[str]) -> Disagreement:
    """Compares both Python parts. Python files must be on both sides; other files may be on one."""
    part = checkout.python_part(installed)
    differing = [
        name for name, entry in part.items() if name in installed and _blob(site / name) != entry.blob
    ]
    return Disagreement(
        differing=tuple(sorted(differing)),
        only_revision=tuple(sorted(name for name in part if name.endswith(".py") and name not in installed)),
        only_installed=tuple(
            sorted(name for name in installed - set(part) if name.endswith(".py") and "/_C/" not in name)
        ),
    )


def _blob(path: Path) -> str:
    """Git's name of a file's content."""
    content = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _path(native_digest: str, config: Config) -> Path:
    return config.cache / "adoptions" / f"{native_digest[:32]}.json"
