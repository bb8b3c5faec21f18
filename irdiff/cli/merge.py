"""`irdiff merge RUN… --out DIR`."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path

import click

from irdiff.cli import options, run_argument
from irdiff.errors import UsageError
from irdiff.model import Run
from irdiff.report import escape, headline
from irdiff.run import merge, run_folder, run_place
from irdiff.store import Store
from irdiff.timing import timing_file


@click.command("merge")
@run_argument.argument("runs", nargs=-1, required=True)
@click.option("--out", type=options.PATH, required=True, help="The run folder to write.")
@click.option("--partial", is_flag=True, help="Merge although shards are missing; the run says so.")
@options.json_option
def merge_command(*, runs: tuple[str, ...], out: Path, partial: bool, json_path: Path | None) -> None:
    """Join the runs of shards, or of several targets, of one comparison to one run."""
    run_place.prepare(out)
    options.check_outside(out, (json_path,))
    with contextlib.ExitStack() as stack:
        folders = [stack.enter_context(run_argument.opened(run)).folder for run in runs]
        if out.exists() and any(folder.samefile(out) for folder in folders):
            raise UsageError(
                f"{out} is one of the runs to merge: it would be lost", hint="--out DIR, another"
            )
        joined = merged(folders, out, partial=partial)
    if json_path:
        options.write_output(json_path, run_folder.dump_parts(joined))
    click.echo(escape.terminal(f"{len(runs)} runs merged: {headline.of(joined)}"), err=True)


def merged(folders: list[Path], out: Path, *, partial: bool) -> Run:
    """Writes one run of the runs in `folders` to `out`, with the files next to them."""
    loaded = [run_folder.load(folder) for folder in folders]
    joined = merge.merge(loaded, partial=partial)
    with tempfile.TemporaryDirectory(prefix="irdiff-merge-") as scratch:
        store = Store(Path(scratch))
        run_folder.write(out, joined, store, _collect(folders, loaded, store))
        timing_file.join(out, [folder for folder in folders if folder.is_dir()])
    return joined


def _collect(folders: list[Path], runs: list[Run], store: Store) -> set[str]:
    """Copies each run's artifacts, each checked against its digest; returns those that are at hand."""
    found = set()
    for folder, run in zip(folders, runs, strict=True):
        digests = {row.digest for case in run.cases for side in case.artifacts for row in side.values()}
        contents = (run_folder.artifact(folder, digest) for digest in digests)
        found |= {store.put(content) for content in contents if content is not None}
    return found
