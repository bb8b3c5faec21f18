"""What the setup.py of a checkout would download, and how to have it without a network.

Read from the text of setup.py: each `download_and_copy(…)` names a folder below `TRITON_HOME/.triton/nvidia`,
what it takes from an archive there, and the variable that says it is not needed.
"""

from __future__ import annotations

import json
import platform
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_CALL = re.compile(r"^    download_and_copy\(\n(.*?)^    \)", re.MULTILINE | re.DOTALL)
_NAME = re.compile(r'name="(\w+)"')
_SOURCE = re.compile(r'src_func=.*?f"([^"]+)"', re.DOTALL)
_PLACE = re.compile(r'dst_path=f?"([^"]+)"')
_VARIABLE = re.compile(r'variable="(\w+)"')
_VERSION = re.compile(r'version=\w+\["([\w-]+)"\]')
_ARCHITECTURES = {"aarch64": "sbsa", "arm64": "sbsa"}


@dataclass(frozen=True, kw_only=True)
class Download:
    """One thing of NVIDIA's that the build copies into the package."""

    folder: str
    """Below `.triton/nvidia`."""
    source: str
    """The path there, with the folder of its archive."""
    place: str
    """The path in `triton/backends/nvidia`."""
    variable: str
    version: str

    @property
    def title(self) -> str:
        """`ptxas`; three archives have an `include`, each told by its own name."""
        name = Path(self.place).name
        return f"{name} of {self.folder}" if name == "include" else name

    def path(self, home: Path) -> Path:
        return home / ".triton" / "nvidia" / self.folder / self.source


def downloads(setup: str, versions_json: str) -> list[Download]:
    """What a setup.py wants of NVIDIA's; nothing where it is written in a way that is not known."""
    try:
        versions = json.loads(versions_json)
    except ValueError:
        return []
    found = []
    for call in _CALL.findall(setup):
        fields = [pattern.search(call) for pattern in (_NAME, _SOURCE, _PLACE, _VARIABLE, _VERSION)]
        name, source, place, variable, version = (field[1] if field else "" for field in fields)
        if not all((name, source, place, variable)) or version not in versions:
            continue
        found.append(
            Download(
                folder=name,
                source=_filled(source, versions[version]),
                place=_filled(place, versions[version]),
                variable=variable,
                version=versions[version],
            )
        )
    return found


def _filled(template: str, version: str) -> str:
    machine = platform.machine()
    values = {
        "system": "linux",
        "arch": _ARCHITECTURES.get(machine, machine),
        "version": version,
        "exe_extension": "",
        "crt": "crt" if int(version.partition(".")[0]) >= 13 else "nvcc",
    }
    return re.sub(r"\{(\w+)\}", lambda found: values.get(found[1], found[0]), template)


def home_of(environment: Mapping[str, str]) -> Path:
    """Where setup.py keeps what it downloads: the parent of `.triton`."""
    return Path(environment.get("TRITON_HOME") or environment.get("HOME") or "/")


def missing(wanted: list[Download], environment: Mapping[str, str]) -> list[Download]:
    home = home_of(environment)
    return [one for one in wanted if one.variable not in environment and not one.path(home).exists()]


def provide(wanted: list[Download], backend: Path, home: Path) -> list[Download]:
    """Copies what is wanted from an installed release's `triton/backends/nvidia`; returns what it lacks.

    Where a checkout takes two parts from one archive (`ptxas` and `ptxas-blackwell` of one version), the file
    of the first is for both.
    """
    lacking, places = [], set[Path]()
    for one in wanted:
        source, place = backend / one.place, one.path(home)
        if place in places:
            continue
        if not source.exists():
            lacking.append(one)
            continue
        places.add(place)
        if source.is_dir():
            shutil.copytree(source, place, dirs_exist_ok=True)
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, place)
    return lacking
