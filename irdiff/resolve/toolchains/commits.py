"""Makes a toolchain of a revision of a Triton checkout: a native part, with the revision's Python part laid
over it.

The native part comes from a release that was adopted for the revision's native digest, or from a build of a
revision with the same digest. The environment links to the native part's files. Links are symbolic: a hard
link would change the ctime of a gigabyte of files that other environments share, and with it every cached
digest of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from irdiff.adapters import adapter
from irdiff.config import Config
from irdiff.errors import ToolchainError
from irdiff.model import Toolchain
from irdiff.resolve import toolchains
from irdiff.resolve.toolchains import checkout as checkouts
from irdiff.resolve.toolchains import environments, identity, native, repository
from irdiff.resolve.toolchains.checkout import Checkout
from irdiff.resolve.toolchains.line_counting import Units
from irdiff.store import key_of, write_whole


@dataclass(frozen=True, kw_only=True)
class NativePart:
    """An installed package whose libraries are those of a native digest."""

    toolchain: Toolchain
    python_files: frozenset[str]
    """The files of the Python part, which are replaced."""
    origin: str
    """Where the native part comes from, in words."""


def toolchain_of(
    checkout: Checkout, config: Config, *, build: bool, counted: Units = ()
) -> tuple[Toolchain, str]:
    """Installs the toolchain of a revision if necessary. Returns it with a description of its origin.

    counted: the lines that it counts. Raises ToolchainError if the native part cannot be built, or is missing
    and `build` is false.
    """
    part = None if counted else _adopted(checkout, config)
    part = part or _built(checkout, config, build=build, counted=counted)
    site = Path(part.toolchain.root).parent
    files = checkout.python_part(checkouts.installed_files(site))
    part_contents = sorted((place, *entry.content) for place, entry in files.items())
    key = key_of("overlay/2", part.toolchain.digest, str(site), sorted(part.python_files), part_contents)

    def lay_over(path: Path, log: Path) -> dict[str, object]:
        target = environments.site_of(path)
        _link_packages(site, target)
        _link_native(site, target, part.python_files)
        _write(files, target)
        log.write_text(f"{checkout.label} over {part.origin}\n", encoding="utf-8")
        return {"counts": counted}

    try:
        environment = identity.make_environment(checkout.label, f"commit-{key[:20]}", config, lay_over)
        toolchain = identity.identify(checkout.label, environment.python, environment.path, config)
    except ToolchainError as error:
        raise ToolchainError(
            f"{checkout.label}: its Python part does not start on {part.origin}:\n{error.what}",
            hint="if the adopted release is too far from this revision, adopt another, or build it: "
            f"irdiff toolchain build {checkout.snapshot.spec}",
            log_path=error.log_path,
        ) from error
    commit = f"commit {checkout.snapshot.commit}; " if checkout.snapshot.commit else ""
    return toolchain, f"{checkout.snapshot.title}; {commit}C++ part (libtriton.so): {part.origin}"


def _adopted(checkout: Checkout, config: Config) -> NativePart | None:
    adoption = find(checkout.native_digest, config)
    if adoption is None:
        return None
    toolchain = toolchains.resolve(adoption.spec, config)
    if toolchain.digest != adoption.toolchain_digest:
        raise ToolchainError(
            f"{adoption.spec} has changed since it was adopted for {adoption.revision[:10]}",
            hint=f"adopt it again: irdiff toolchain adopt {adoption.revision[:10]} {adoption.spec}",
        )
    return NativePart(
        toolchain=toolchain,
        python_files=frozenset(adoption.python_files),
        origin=f"{adoption.spec}, adopted for {adoption.revision}",
    )


def _built(checkout: Checkout, config: Config, *, build: bool, counted: Units) -> NativePart:
    built = (native.build if build else native.find)(checkout, config, counted)
    if built is None:
        raise ToolchainError(
            f"{checkout.label} has no native build yet (native digest {checkout.native_digest[:12]})",
            hint=f"build it: irdiff toolchain build {checkout.snapshot.spec}\n"
            "        or, for Python-only work on top of a release: irdiff toolchain adopt REV triton==X",
        )
    environments.touch(built)
    return NativePart(
        toolchain=identity.identify(checkout.label, built.python, built.path, config),
        python_files=frozenset(built.state["python_files"]),
        origin=f"built from {built.state['revision']}{_made_with(built.state['environment'])}"
        + (f", counting the lines of {len(counted)} files" if counted else ""),
    )


def _made_with(environment: Mapping[str, str]) -> str:
    """Names the compiler that ran and the LLVM that was linked."""
    parts = [environment[name] for name in ("c++", "llvm") if environment.get(name, "none") != "none"]
    return f" with {', '.join(parts)}" if parts else ""


def _link_packages(site: Path, target: Path) -> None:
    """Links everything next to triton: setuptools, metadata with the backends' entry points, libraries."""
    for entry in sorted(site.iterdir()):
        place = target / entry.name
        if entry.name in ("triton", "__pycache__") or entry.name.startswith("_virtualenv") or place.exists():
            continue
        place.symlink_to(entry)


def _link_native(site: Path, target: Path, python_files: frozenset[str]) -> None:
    for name in checkouts.installed_files(site) - python_files:
        place = target / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to((site / name).resolve())


def _write(files: dict[str, repository.TreeEntry], target: Path) -> None:
    contents = repository.read(list(files.values()))
    for name, entry in files.items():
        place = target / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.unlink(missing_ok=True)  # a link into the native part: never write through it
        place.write_bytes(contents[entry.path])
        if entry.mode == "100755":
            place.chmod(0o755)


# adoption: the declaration that a release's native part is the one of a revision


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
        return adapter(Adoption).validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise ToolchainError(
            f"the adoption at {path} is damaged: {error}", hint="remove the file and adopt again"
        ) from error


def adopt(
    checkout: Checkout, spec: str, toolchain: Toolchain, config: Config, *, anyway: bool
) -> tuple[Adoption, list[str]]:
    """Returns the adoption, and how the Python parts differ. Raises ToolchainError if they do, unless
    `anyway`. Python files must be on both sides; other files may be on one.
    """
    site = Path(toolchain.root).parent
    installed = checkouts.installed_files(site)
    part = checkout.python_part(installed)
    only_installed = {name for name in installed - part.keys() if name.endswith(".py") and "/_C/" not in name}
    adopted = {
        "differs": {name for name in part.keys() & installed if _blob(site / name) != part[name].blob},
        "only in the revision": {name for name in part.keys() - installed if name.endswith(".py")},
        "only in the package": only_installed,
    }
    lines = [f"{kind}: {name}" for kind, names in adopted.items() for name in sorted(names)]
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
    write_whole(_path(checkout.native_digest, config), adapter(Adoption).dump_json(adoption, indent=1))
    return adoption, lines


def _blob(path: Path) -> str:
    """Returns git's name of a file's content."""
    content = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _path(native_digest: str, config: Config) -> Path:
    return config.cache / "adoptions" / f"{native_digest[:32]}.json"
