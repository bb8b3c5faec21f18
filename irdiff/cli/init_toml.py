"""What `irdiff init` writes into `irdiff.toml`, found by looking around in a repository."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from irdiff.cli.init_imports import Imports
from irdiff.resolve import packages as beside
from irdiff.resolve import pins

FALLBACK_TOOLCHAIN = "triton==3.9.0"
_SKIPPED = frozenset({".git", ".venv", "venv", "node_modules", "build", "dist", "__pycache__"})
_MAX_FILES = 20_000


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What a repository of kernels looks like."""

    workloads: str
    """The folder of workloads that is there, or that is proposed."""
    has_workloads: bool
    imports: tuple[str, ...]
    pin: str | None
    pinned: str | None
    """The version that the pin names."""
    kernels: tuple[str, ...]
    """Files with kernels."""
    packages: tuple[str, ...]
    """What workloads and kernels import beside Triton, with the version of the project's environment where no
    lock file names one."""


def look_around(root: Path, packages: Sequence[str] = ()) -> Surroundings:
    """Finds workloads (files with a table LAUNCHES), kernels, import folders and a pinned Triton.

    `packages` are wanted beside those that are found, and say their versions.
    """
    files = list(_python_files(root))
    kernels = [path for path in files if _has_kernel(path)]
    workloads = [path for path in files if _is_workload(path)]
    folder = _workload_folder(workloads, root)
    pin, version = _pin(root)
    outside = [path for path in kernels if path not in workloads]
    return Surroundings(
        workloads=folder.as_posix(),
        has_workloads=bool(workloads),
        imports=_import_folders(outside, workloads, files, root),
        pin=pin,
        pinned=version,
        kernels=tuple(path.relative_to(root).as_posix() for path in kernels),
        packages=_packages(Imports(root, files).packages(workloads or outside), packages, pin, root),
    )


def folders_imported_from(workloads: Path, root: Path) -> tuple[str, ...]:
    """The folders of a repository that the workloads in one of its folders import from."""
    return Imports(root, _python_files(root)).folders(workloads.rglob("*.py"))


def irdiff_toml(found: Surroundings) -> str:
    """The text of the file."""
    imports = ", ".join(f'"{name}"' for name in found.imports)
    lines = [
        "[kernels]",
        "# The folder of workloads, FAMILY/NAME.py: ordinary Python that launches kernels.",
        f'workloads = "{found.workloads}"',
        "# The folders that workloads import kernels from.",
        f"import = [{imports}]",
    ]
    if found.pin:
        lines += [
            f"# Each revision's own Triton ({found.pinned} now): a bump of it shows its blast radius.",
            f'pin = "{found.pin}"',
        ]
    lines += ["# The compiler of revisions without a pin.", f'toolchain = "{_toolchain(found)}"']
    if found.packages:
        names = ", ".join(f'"{name}"' for name in found.packages)
        lines += ["# What they import beside Triton; CPU builds of torch will do.", f"packages = [{names}]"]
    return "\n".join(lines) + "\n"


def _toolchain(found: Surroundings) -> str:
    return f"triton=={found.pinned}" if found.pinned else FALLBACK_TOOLCHAIN


def _python_files(root: Path) -> Iterable[Path]:
    count = 0
    pending = [root]
    while pending:
        for path in sorted(pending.pop().iterdir()):
            if path.is_dir() and not path.is_symlink() and path.name not in _SKIPPED:
                pending.append(path)
            elif path.suffix == ".py" and path.is_file():
                count += 1
                if count > _MAX_FILES:
                    return
                yield path


_KERNEL = re.compile(r"^\s*@(?:triton|gluon)\.jit\b|^\s*@jit\b", re.MULTILINE)


def _has_kernel(path: Path) -> bool:
    text = path.read_text(encoding="utf-8", errors="replace")
    return bool(_KERNEL.search(text)) and "triton" in text


def _is_workload(path: Path) -> bool:
    text = path.read_text(encoding="utf-8", errors="replace")
    if "LAUNCHES" not in text or "irdiff_corpus" not in text:
        return False
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    targets = [name for node in tree.body if isinstance(node, ast.Assign) for name in node.targets]
    return any(isinstance(name, ast.Name) and name.id == "LAUNCHES" for name in targets)


def _workload_folder(workloads: Sequence[Path], root: Path) -> Path:
    """The one that is there, or that is proposed."""
    return _common_folder([path.parent.parent for path in workloads], root) if workloads else Path("irdiff")


def _common_folder(folders: Sequence[Path], root: Path) -> Path:
    relative = [folder.relative_to(root) if folder.is_relative_to(root) else Path() for folder in folders]
    common = relative[0]
    for folder in relative[1:]:
        while common != folder and common not in folder.parents:
            common = common.parent
    return common


def _import_folders(
    kernels: Sequence[Path], workloads: Sequence[Path], files: Sequence[Path], root: Path
) -> tuple[str, ...]:
    """The folders that workloads import from, and that above each top package that holds kernels."""
    found = set(Imports(root, files).folders(workloads)) - {_workload_folder(workloads, root).as_posix()}
    found |= {_above_packages(path, root).relative_to(root).as_posix() for path in kernels}
    return tuple(sorted(found)) or (".",)


def _above_packages(path: Path, root: Path) -> Path:
    """The folder above the outermost package around a file; one between them may lack its __init__.py."""
    inside = path.relative_to(root).parents
    packages = [
        root / folder for folder in inside if folder.name and (root / folder / "__init__.py").exists()
    ]
    return packages[-1].parent if packages else path.parent


def _pin(root: Path) -> tuple[str | None, str | None]:
    for name in (*pins.FILES, "pyproject.toml"):
        path = root / name
        if path.is_file():
            version = pins.version(name, path.read_bytes())
            if version:
                return name, version
    return None, pins.installed(root, "triton")


def _packages(imported: Iterable[str], asked: Sequence[str], pin: str | None, root: Path) -> tuple[str, ...]:
    locked = (root / pin).read_bytes() if pin else b""
    wanted = {name: _unlocked(text.strip(), name, pin or "", locked) for name, text in _named(asked)}
    found = [_requirement(name, pin or "", locked, root) for name in imported]
    return tuple(sorted([*wanted.values(), *(text for text in found if beside.name_of(text) not in wanted)]))


def _named(requirements: Iterable[str]) -> Iterator[tuple[str, str]]:
    return ((beside.name_of(text), text) for text in requirements)


def _unlocked(requirement: str, name: str, pin: str, locked: bytes) -> str:
    """Without its version where the lock file names the same: a bump there is followed."""
    return name if requirement == f"{name}=={pins.version(pin, locked, name)}" else requirement


def _requirement(module: str, pin: str, locked: bytes, root: Path) -> str:
    name = module.replace("_", "-")
    version = None if pins.version(pin, locked, name) else pins.installed(root, name)
    return f"{name}=={version}" if version else name
