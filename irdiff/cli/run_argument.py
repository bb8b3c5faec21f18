"""RUN, as every command takes it: a folder, an archive, `last`, or a name of `irdiff runs`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from irdiff import config as configuration
from irdiff.config import Config
from irdiff.run import run_archive, run_list


@dataclass(frozen=True, kw_only=True)
class GivenRun:
    folder: Path
    """The run folder, or its `run.json`; of an archive a copy that is gone when the command ends."""
    call: str
    """By which another command finds it."""
    is_archive: bool


@contextmanager
def opened(text: str, config: Config | None = None) -> Iterator[GivenRun]:
    """The run that a user means. Raises RunFolderError."""
    runs = (config or configuration.load()).runs
    path = run_list.find(text, runs)
    with run_archive.opened(path) as folder:
        yield GivenRun(folder=folder, call=run_list.call_of(path, runs), is_archive=folder != path)


def complete(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of runs; a shell completes the paths of folders and archives itself."""
    runs = configuration.load(cache=context.params.get("cache")).runs
    names = [run_list.LAST, *(row.name for row in run_list.listed(runs))]
    found = [CompletionItem(name) for name in names if name.startswith(incomplete)]
    return found or [CompletionItem(incomplete, type="file")]


def folder_of(context: click.Context) -> Path | None:
    """The run that a command line names so far, where it is a folder: for completing what stands after it."""
    text = context.params.get("run")
    if not isinstance(text, str):
        return None
    path = run_list.find(text, configuration.load(cache=context.params.get("cache")).runs)
    return path if path.is_dir() else None


def argument(name: str = "run", **settings: Any) -> Callable[[Any], Any]:
    return click.argument(name, shell_complete=complete, **settings)
