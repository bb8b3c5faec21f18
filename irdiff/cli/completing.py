"""What a shell offers for sides, targets and cases: what is on this machine, nothing is installed for it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click  # noqa: TC002

from irdiff import config as configuration
from irdiff.config import Config
from irdiff.errors import IrdiffError
from irdiff.resolve import corpus
from irdiff.resolve.toolchains import environments


def sides(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """The installed releases."""
    specs = {str(row.state["spec"]) for row in environments.list_all(_config(context))}
    return _matching(sorted(spec for spec in specs if spec.startswith("triton==")), incomplete)


def target_names(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    return _matching(["all", *_targets(context)], incomplete)


def workloads(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Workloads, and behind a `@` the targets. Labels are known only once a workload has run."""
    before, at, target = incomplete.partition("@")
    if at:
        return [f"{before}@{name}" for name in _matching(_targets(context), target)]
    root = context.params.get("corpus") or _config(context).shipped / "corpus"
    try:
        names = corpus.load(Path(root)).workloads
    except IrdiffError:
        return []
    own = [name for name in names if name.partition("/")[2].startswith(incomplete)]
    return _matching(names, incomplete) or own


def _targets(context: click.Context) -> list[str]:
    folders = (_config(context).shipped / "targets", context.params.get("targets_dir"))
    return [path.stem for folder in folders if folder for path in sorted(Path(folder).glob("*.toml"))]


def _config(context: click.Context) -> Config:
    return configuration.load(cache=context.params.get("cache"))


def _matching(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
