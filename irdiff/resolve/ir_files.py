"""Two files of IR as two sides of one toolchain.

Each becomes a corpus with one workload that launches it (`irdiff_corpus.launch_ir`), in a folder of the cache
that is named by its content.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Sequence
from pathlib import Path

from irdiff.backends.stages import ASSEMBLIES, BY_SUFFIX, MACHINE_CODE
from irdiff.config import Config
from irdiff.errors import UsageError
from irdiff.model import Sides, Toolchain
from irdiff.resolve import corpus as corpora
from irdiff.resolve import toolchains
from irdiff.resolve.sides import Side
from irdiff.resolve.toolchains import environments
from irdiff.stages import MLIR, Stage
from irdiff.store import key_of

SUFFIXES = (".ttir", ".ttgir")
_READ_BY_NO_COMPILER = {
    *(f".{stage}" for stage in (Stage.LLIR, *ASSEMBLIES, *MACHINE_CODE)),
    *(suffix for suffix, stage in BY_SUFFIX.items() if stage not in MLIR),
}
_RELEASE = re.compile(r"triton==(\d+(?:\.\d+)*)")
_WORKLOAD = '''"""One file of IR."""

from irdiff_corpus import launch_ir

LAUNCHES = {{"file": launch_ir({path!r}, options={options!r}, tier="gate")}}
'''


def sides(paths: Sides[Path], options: Sequence[str], triton: str | None, config: Config) -> Sides[Side]:
    """options: `NAME=VALUE` for the launch; values are JSON, or else text. Raises UsageError,
    ToolchainError.
    """
    if paths.base.suffix != paths.head.suffix or paths.head.suffix not in SUFFIXES:
        if paths.base.suffix == paths.head.suffix and paths.head.suffix in _READ_BY_NO_COMPILER:
            raise UsageError(
                f"{paths.base} and {paths.head} are texts that no Triton compiler takes",
                hint=f"diff <(irdiff normalize {paths.base}) <(irdiff normalize {paths.head})",
            )
        raise UsageError(
            f"{paths.base} and {paths.head} are not two files of one stage that a compiler takes",
            hint="both must end in .ttir, or both in .ttgir",
        )
    chosen = dict(_option(text) for text in options)
    toolchain = _toolchain(triton, config)
    name = re.sub(r"\W", "_", paths.head.stem).strip("_").lower() or "kernel"
    return paths.map(lambda path: _side(path, name, chosen, toolchain, config))


def _option(text: str) -> tuple[str, object]:
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise UsageError(f"--option {text!r} is not NAME=VALUE", hint="as in --option num_warps=8")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _toolchain(spec: str | None, config: Config) -> Toolchain:
    """Falls back to the newest installed release."""
    if spec is None:
        installed = [environment.state.get("spec", "") for environment in environments.list_all(config)]
        releases = [release[1] for text in installed if (release := _RELEASE.fullmatch(str(text)))]
        if not releases:
            raise UsageError(
                "no Triton is installed to compile the files with", hint="--triton triton==3.9.0"
            )
        newest = max(releases, key=lambda version: [int(part) for part in version.split(".")])
        spec = f"triton=={newest}"
    return toolchains.resolve(spec, config)


def _side(path: Path, name: str, chosen: dict[str, object], toolchain: Toolchain, config: Config) -> Side:
    try:
        content = path.read_bytes().removeprefix(codecs.BOM_UTF8)
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read: {error.strerror}",
            hint="name two files of IR: irdiff compare --ir base.ttgir head.ttgir",
        ) from error
    if not content.strip():
        raise UsageError(
            f"{path} is empty", hint="write the IR again: MLIR_ENABLE_DUMP=1, or TRITON_KERNEL_DUMP=1"
        )
    place = f"ir/{name}{path.suffix}"
    workload = _WORKLOAD.format(path=place, options=chosen)
    root = config.cache / "exports" / f"ir-{key_of(content.hex(), workload)[:24]}"
    (root / "ir").mkdir(parents=True, exist_ok=True)
    (root / place).write_bytes(content)
    (root / "ir" / f"{name}.py").write_text(workload, encoding="utf-8")
    return Side(toolchain=toolchain, corpus=corpora.load(root), note=f"IR of {path}")
