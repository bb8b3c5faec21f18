from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path

import click

from irdiff import config as configuration
from irdiff.cli import options, screen
from irdiff.config import Config, StoreMode
from irdiff.errors import ExitCode, StoreError, UsageError
from irdiff.resolve import toolchains
from irdiff.store import Store
from irdiff.store.shared import SharedStore
from irdiff.words import counted

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


@click.group("store")
def store_group() -> None:
    """Show, check, share and prune the store of compiled artifacts."""


@store_group.command("show")
@options.configured
@options.json_option
def show(*, config: Config, json_path: Path | None) -> None:
    """Show where the store is and how large it is."""
    store = Store(config.store)
    usage = store.usage()
    if json_path:
        options.write_json(json_path, {"path": str(store.root), **asdict(usage)})
        return
    size = f"{usage.size_bytes / 1e6:.1f} MB"
    click.echo(f"{store.root}: {usage.objects} artifacts, {usage.records} records, {size}")


@store_group.command("prune")
@click.option("--max-size", metavar="SIZE", help="Keep at most so much: 500MB, 2GB.")
@click.option(
    "--max-age", type=click.FloatRange(min=0), metavar="DAYS", help="Remove what was unused for longer."
)
@options.configured
def prune(*, max_size: str | None, max_age: float | None, config: Config) -> None:
    """Remove what was unused for DAYS, and what was unused longest until the rest fits into SIZE."""
    if max_size is None and max_age is None:
        raise UsageError("say what to remove", hint="--max-size 2GB, or --max-age 30")
    bound = parse_size(max_size) if max_size is not None else None
    store = Store(config.store)
    freed = store.prune(bound, max_age_s=None if max_age is None else max_age * configuration.DAY_S)
    click.echo(f"freed {freed / 1e6:.1f} MB; {store.usage().size_bytes / 1e6:.1f} MB are left")


# the shared store


@store_group.command("push")
@options.cache_option
def push(*, cache: Path | None) -> int:
    """Write to the shared store (IRDIFF_STORE) what was made here and it lacks."""
    config = configuration.load(cache=cache, store_mode=StoreMode.WRITE)
    shared = _shared(config)
    with screen.progress() as report:
        shared.push_kept(report)
    done = shared.traffic
    return _finished(shared, f"{done.sent_bundles} bundles, {done.sent_bytes / 1e6:.1f} MB sent")


@store_group.command("pull")
@click.argument("specs", nargs=-1, required=True, metavar="TOOLCHAIN...")
@options.configured
def pull(*, specs: tuple[str, ...], config: Config) -> int:
    """Fetch what the shared store (IRDIFF_STORE) has of toolchains, named as for `irdiff compare`."""
    shared = _shared(config)
    digests = [toolchains.resolve(spec, config).digest for spec in specs]
    with screen.progress() as report:
        shared.pull(digests, None, report)
    done = shared.traffic
    size = f"{done.size_bytes / 1e6:.1f} MB"
    return _finished(
        shared, f"{counted(done.bundles, 'bundle')}, {counted(done.files, 'file')}, {size} fetched"
    )


@store_group.command("verify")
@options.configured
def verify(*, config: Config) -> int:
    """Read every artifact and record and check it; damaged ones are removed. Ends with 1 if one is."""
    damaged = Store(config.store).remove_damaged()
    for name in damaged:
        click.echo(f"damaged: {name}")
    click.echo(f"{len(damaged)} damaged")
    return ExitCode.ANSWER_IS_NO if damaged else ExitCode.DONE


def _shared(config: Config) -> SharedStore:
    if config.shared_store is None:
        raise UsageError(
            "no shared store is named", hint="IRDIFF_STORE=s3://BUCKET/PATH, gs://, az:// or a folder"
        )
    return SharedStore(Store(config.store), config.shared_store)


def _finished(shared: SharedStore, done: str) -> int:
    """Returns the exit code. Raises StoreError if the shared store did not answer."""
    click.echo(done)
    for refused in shared.traffic.refused:
        click.echo(f"refused: {refused}")
    if shared.trouble:
        raise StoreError(shared.trouble, hint="see that IRDIFF_STORE and its credentials are right")
    return ExitCode.ANSWER_IS_NO if shared.traffic.refused else ExitCode.DONE


def parse_size(text: str) -> int:
    """Returns bytes. Units are powers of 1024: K, M, G, T, with or without B or iB; B alone means bytes.
    Raises UsageError for a number without a unit.
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(?:([KMGT])(?:i?B)?|(B))?\s*", text, re.IGNORECASE)
    if not match:
        raise UsageError(f"{text!r} is not a size", hint="write it as 500MB or 2GB")
    if not (match[2] or match[3]):
        likely = "GB" if float(match[1]) < 100 else "MB" if float(match[1]) < 100_000 else "B"
        raise UsageError(f"{text!r} has no unit", hint=f"--max-size {match[1]}{likely}?")
    return int(float(match[1]) * _UNITS[(match[2] or "").upper()])
