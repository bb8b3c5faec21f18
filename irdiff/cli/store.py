"""`irdiff store`: what the store holds, making it smaller, and the store that many machines share."""

from __future__ import annotations

import json
import re
from pathlib import Path

import click

from irdiff import config as configuration
from irdiff.cli import options, screen
from irdiff.config import Config, SharedStoreConfig, StoreMode
from irdiff.errors import ExitCode, StoreError, UsageError
from irdiff.resolve import toolchains
from irdiff.shared_store import pruning, signatures
from irdiff.shared_store.place import Place
from irdiff.shared_store.session import SharedStoreSession
from irdiff.store import Store

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


@click.group("store")
def store_group() -> None:
    """Show, check, share and prune the store of compiled artifacts."""


@store_group.command("show")
@options.cache_option
@options.json_option
def show(cache: Path | None, json_path: Path | None) -> int:
    """Show where the store is and how large it is."""
    store = Store(configuration.load(cache=cache).store)
    usage = store.usage()
    if json_path:
        row = {
            "path": str(store.root),
            "objects": usage.objects,
            "records": usage.records,
            "packs": usage.packs,
            "size_bytes": usage.size_bytes,
        }
        options.write_output(json_path, json.dumps(row, indent=1) + "\n")
        return ExitCode.DONE
    packs = f", {usage.packs} packs" if usage.packs else ""
    click.echo(
        f"{store.root}: {usage.objects} artifacts, {usage.records} records{packs}, "
        f"{usage.size_bytes / 1e6:.1f} MB"
    )
    return ExitCode.DONE


@store_group.command("prune")
@click.option("--max-size", metavar="SIZE", help="Keep at most so much: 500MB, 2GB.")
@click.option(
    "--max-age", type=click.FloatRange(min=0), metavar="DAYS", help="Remove what was unused for longer."
)
@click.option("--shared", is_flag=True, help="Prune the shared store (IRDIFF_STORE), not this machine's.")
@options.cache_option
def prune(max_size: str | None, max_age: float | None, shared: bool, cache: Path | None) -> int:
    """Remove what was unused longest: until the rest fits into SIZE, and all that is older than DAYS."""
    if max_size is None and max_age is None:
        raise UsageError("nothing says what to remove", hint="--max-size 2GB, or --max-age 30")
    bound = parse_size(max_size) if max_size is not None else None
    config = configuration.load(cache=cache)
    if shared:
        pruned = pruning.prune(_place(config), bound, max_age)
        click.echo(f"removed {pruned.packs} packs, {pruned.size_bytes / 1e6:.1f} MB; {pruned.left} are left")
        return ExitCode.DONE
    store = Store(config.store)
    freed = store.prune(bound, max_age_s=None if max_age is None else max_age * 86400)
    click.echo(f"freed {freed / 1e6:.1f} MB; {store.usage().size_bytes / 1e6:.1f} MB are left")
    return ExitCode.DONE


# the shared store


@store_group.command("push")
@options.cache_option
def push(cache: Path | None) -> int:
    """Leave in the shared store (IRDIFF_STORE) what comparisons with it have made here and it lacks."""
    config = configuration.load(cache=cache, store_mode=StoreMode.WRITE)
    session, store = _session(config), Store(config.store)
    rows: dict[str, dict[str, set[str]]] = {}
    for record in store.records("scope"):
        rows.setdefault(record["part"], {})[record["toolchain"]] = set(record["names"])
    with screen.progress() as report:
        session.look({toolchain for row in rows.values() for toolchain in row}, report)
        session.push(rows, report)
    return _told(
        session, f"{session.traffic.sent_packs} packs, {session.traffic.sent_bytes / 1e6:.1f} MB sent"
    )


@store_group.command("pull")
@click.argument("specs", nargs=-1, required=True, metavar="TOOLCHAIN...")
@options.cache_option
def pull(specs: tuple[str, ...], cache: Path | None) -> int:
    """Fetch all that the shared store (IRDIFF_STORE) has of toolchains, given as for `irdiff compare`."""
    config = configuration.load(cache=cache)
    session = _session(config)
    digests = [toolchains.resolve(spec, config).digest for spec in specs]
    with screen.progress() as report:
        session.pull(digests, None, report)
    told = session.traffic
    return _told(session, f"{told.packs} packs, {told.files} files, {told.size_bytes / 1e6:.1f} MB fetched")


@store_group.command("verify")
@click.option("--shared", is_flag=True, help="The shared store (IRDIFF_STORE), not this machine's.")
@options.cache_option
def verify(shared: bool, cache: Path | None) -> int:
    """Read every file and check it; damaged ones of this machine are removed. Ends with 1 where any is."""
    config = configuration.load(cache=cache)
    damaged = pruning.damaged(_place(config)) if shared else Store(config.store).remove_damaged()
    for name in damaged:
        click.echo(f"damaged: {name}")
    click.echo(f"{len(damaged)} damaged")
    return ExitCode.ANSWER_IS_NO if damaged else ExitCode.DONE


@store_group.command("key")
def key() -> int:
    """Make a new pair of keys: the first one for jobs that write the shared store, the second one for all."""
    private, public = signatures.new_keys()
    click.echo(f"IRDIFF_STORE_SIGNING_KEY={private}\nIRDIFF_STORE_PUBLIC_KEY={public}")
    return ExitCode.DONE


def _chosen(config: Config) -> SharedStoreConfig:
    if config.shared_store is None:
        raise UsageError(
            "no shared store is named", hint="IRDIFF_STORE=s3://BUCKET/PATH, gs://, az:// or a folder"
        )
    return config.shared_store


def _place(config: Config) -> Place:
    return Place(_chosen(config).url)


def _session(config: Config) -> SharedStoreSession:
    return SharedStoreSession(Store(config.store), _place(config), _chosen(config))


def _told(session: SharedStoreSession, done: str) -> int:
    """The exit code; raises StoreError where the shared store did not answer."""
    click.echo(done)
    for refused in session.traffic.refused:
        click.echo(f"refused: {refused}")
    if session.trouble:
        raise StoreError(session.trouble, hint="see that IRDIFF_STORE and its credentials are right")
    return ExitCode.ANSWER_IS_NO if session.traffic.refused else ExitCode.DONE


def parse_size(text: str) -> int:
    """Bytes. Units are powers of 1024: K, M, G, T, with or without B or iB; B alone is bytes.

    Raises UsageError for a number without a unit: nobody means two bytes by 2.
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(?:([KMGT])(?:i?B)?|(B))?\s*", text, re.IGNORECASE)
    if not found:
        raise UsageError(f"{text!r} is not a size", hint="write it as 500MB or 2GB")
    if not (found[2] or found[3]):
        likely = "GB" if float(found[1]) < 100 else "MB" if float(found[1]) < 100_000 else "B"
        raise UsageError(f"{text!r} has no unit", hint=f"--max-size {found[1]}{likely}?")
    return int(float(found[1]) * _UNITS[(found[2] or "").upper()])
