"""Where `irdiff capture` writes in a repository, and what is to be typed after it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from irdiff.cli import init_toml
from irdiff.config import Config
from irdiff.errors import UsageError
from irdiff.report import commands
from irdiff.resolve import kernel_repository
from irdiff.resolve.kernel_repository import Plan
from irdiff.resolve.toolchains import repository

_DEFAULT = Path("irdiff-captured")


def repository_root(config: Config) -> Path | None:
    """The working tree that the current folder lies in."""
    try:
        return repository.open_store(Path.cwd(), config).worktree
    except UsageError:
        return None


def default_folder(root: Path | None) -> Path:
    plan = _plan(root) if root else None
    return root / plan.workloads if root and plan else _DEFAULT


def is_inside(out: Path, root: Path | None) -> bool:
    """Whether workloads there can import the repository's kernels; elsewhere they hold copies."""
    return root is not None and out.resolve().is_relative_to(root.resolve())


def import_folders(root: Path | None) -> list[Path]:
    """Where the repository's own packages lie, for an interpreter in which they are not installed."""
    plan = _plan(root) if root else None
    names = plan.imports if plan else ("src", ".")
    return [root / name for name in names if (root / name).is_dir()] if root else []


def next_steps(root: Path, out: Path, packages: Sequence[str]) -> Iterator[str]:
    """Lines for a user whose workloads were just written, with these packages."""
    place = out.resolve()
    plan = _plan(root)
    if plan is None:
        words = [word for package in packages for word in ("--with", package)]
        yield f"  next: {commands.command('init', *words)}, then commit both; after a change: irdiff compare"
        return
    folder = root / plan.workloads
    if place != folder.resolve():
        yield f"  note: {kernel_repository.FILE} has workloads in {plan.workloads}, not here"
    missing = [name for name in init_toml.folders_imported_from(place, root) if name not in plan.imports]
    if missing:
        yield f"  note: add to import = [...] in {kernel_repository.FILE}: {', '.join(missing)}"
    yield "  next: commit them; after a change: irdiff compare"


def _plan(root: Path) -> Plan | None:
    path = root / kernel_repository.FILE
    return kernel_repository.parse_plan(path.read_bytes(), str(path)) if path.is_file() else None
