"""What a shell offers for sides, targets and cases: what is on this machine, nothing is installed for it."""

from __future__ import annotations

from pathlib import Path

import click  # noqa: TC002
from click.shell_completion import CompletionItem

from irdiff import config as configuration
from irdiff.config import Config
from irdiff.errors import IrdiffError
from irdiff.resolve import corpus
from irdiff.resolve.toolchains import environments


def sides(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The installed releases."""
    known = environments.list_all(_config(context))
    specs = sorted({str(row.state["spec"]) for row in known if str(row.state["spec"]).startswith("triton==")})
    return _matching(specs, incomplete)


def target_names(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    folder = context.params.get("targets_dir")
    folders = [_config(context).shipped / "targets", *([Path(folder)] if folder else [])]
    return _matching(
        ["all", *(path.stem for place in folders for path in sorted(place.glob("*.toml")))], incomplete
    )


def workloads(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Workloads, and behind a `@` the targets. Labels are known only once a workload has run."""
    before, at, target = incomplete.partition("@")
    if at:
        known = [path.stem for path in sorted((_config(context).shipped / "targets").glob("*.toml"))]
        return [CompletionItem(f"{before}@{name}") for name in known if name.startswith(target)]
    root = context.params.get("corpus") or _config(context).shipped / "corpus"
    try:
        names = corpus.load(Path(root)).workloads
    except IrdiffError:
        return []
    own = [name for name in names if name.partition("/")[2].startswith(incomplete)]
    return _matching(names, incomplete) or [CompletionItem(name) for name in own]


def _config(context: click.Context) -> Config:
    return configuration.load(cache=context.params.get("cache"))


def _matching(names: list[str] | tuple[str, ...], incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]
