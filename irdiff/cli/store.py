"""`irdiff store`: what the store holds, and making it smaller."""

from __future__ import annotations

import json
import re
from pathlib import Path

import click

from irdiff import config as configuration
from irdiff.cli import options
from irdiff.errors import ExitCode, UsageError
from irdiff.store import Store

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


@click.group("store")
def store_group() -> None:
    """Show and prune the store of compiled artifacts."""


@store_group.command("show")
@options.cache_option
@options.json_option
def show(cache: Path | None, json_path: Path | None) -> int:
    """Where it is and how large."""
    store = Store(configuration.load(cache=cache).store)
    usage = store.usage()
    if json_path:
        row = {
            "path": str(store.root),
            "objects": usage.objects,
            "records": usage.records,
            "size_bytes": usage.size_bytes,
        }
        options.write_output(json_path, json.dumps(row, indent=1) + "\n")
        return ExitCode.DONE
    click.echo(
        f"{store.root}: {usage.objects} artifacts, {usage.records} records, {usage.size_bytes / 1e6:.1f} MB"
    )
    return ExitCode.DONE


@store_group.command("prune")
@click.option("--max-size", required=True, metavar="SIZE", help="As in 500MB or 2GB.")
@options.cache_option
def prune(max_size: str, cache: Path | None) -> int:
    """Remove what was unused longest until the store fits into SIZE."""
    store = Store(configuration.load(cache=cache).store)
    freed = store.prune(parse_size(max_size))
    click.echo(f"freed {freed / 1e6:.1f} MB; {store.usage().size_bytes / 1e6:.1f} MB are left")
    return ExitCode.DONE


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
