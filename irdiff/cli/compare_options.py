"""The options of `irdiff compare`, and what a user gave them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from irdiff.cli import completing, options, run_argument


@dataclass(frozen=True, kw_only=True)
class CompareWords:
    """What a user gave, under the names that the options below have."""

    base: str | None
    head: str | None
    repo: Path | None
    triton: str | None
    is_ir: bool
    ir_options: tuple[str, ...]
    exercised: bool
    no_build: bool
    origin: str | None
    ptxas: str | None
    bump: bool
    target_names: tuple[str, ...]
    targets_dir: Path | None
    corpus: Path | None
    packs: tuple[str, ...]
    python: str | None
    packages: tuple[str, ...]
    program: str | None
    configs: int | None
    cases: tuple[str, ...]
    tiers: tuple[str, ...]
    stages: str
    no_shortcut: bool
    recheck: bool
    attribute: bool
    shard: str
    out: Path | None
    known: str | None
    quiet: bool
    limit: int | None
    json_path: Path | None
    markdown_path: Path | None
    html_path: Path | None
    exit_code: bool
    cache: Path | None
    store_mode: str | None
    cluster: str | None
    jobs: int | None
    timeout_s: float
    memory_mib: int

    @property
    def files(self) -> tuple[Path | None, Path | None, Path | None]:
        """What is written beside the run folder."""
        return self.json_path, self.markdown_path, self.html_path


_OPTIONS = (
    click.argument("base", required=False, shell_complete=completing.sides),
    click.argument("head", required=False, shell_complete=completing.sides),
    options.repo_option,
    click.option(
        "--triton",
        metavar="SPEC",
        help="The compiler of both sides where revisions select kernels: triton==3.9.0.",
    ),
    click.option(
        "--ir",
        "is_ir",
        is_flag=True,
        help="BASE and HEAD are files of IR, .ttir or .ttgir, for one compiler.",
    ),
    click.option(
        "--option",
        "ir_options",
        multiple=True,
        metavar="NAME=VALUE",
        help="An option of the launch, with --ir: num_warps=8; repeatable.",
    ),
    click.option(
        "--exercised",
        is_flag=True,
        help="Count the cases that run the passes of an edited source: one more compilation of base.",
    ),
    click.option(
        "--no-build", is_flag=True, help="Fail where a native part is missing, instead of building it."
    ),
    options.origin_option,
    options.ptxas_option,
    options.bump_option,
    options.target_option,
    options.targets_folder_option,
    options.corpus_option,
    options.pack_option,
    options.kernel_options,
    options.case_option,
    options.tier_option,
    click.option("--stages", default="", help="Stages to compare, comma-separated; default: all."),
    click.option(
        "--no-shortcut", is_flag=True, help="Compile both sides anew, even where they are the same."
    ),
    click.option(
        "--recheck/--no-recheck",
        default=True,
        help="Make one changed case of each group again to see if a side agrees with itself.",
    ),
    click.option(
        "--attribute/--no-attribute",
        default=True,
        help="Look for the pass and the component behind each change (about one more compilation of each).",
    ),
    click.option("--shard", default="1/1", help="K/N: the K-th of N parts of the cases."),
    click.option(
        "--out",
        type=click.Path(path_type=Path),
        help="The run folder; default: one in the cache. Other commands know it as `last` too.",
    ),
    click.option(
        "--known",
        metavar="RUN",
        shell_complete=run_argument.complete,
        help="Show only what this earlier run did not have, and count the rest; --exit-code asks about that.",
    ),
    click.option("--quiet", "-q", is_flag=True, help="Show no progress, and of the report its first line."),
    options.limit_option,
    options.json_option,
    click.option(
        "--markdown", "markdown_path", type=options.OutputFile(), help="Write the Markdown report here."
    ),
    click.option(
        "--html", "html_path", type=options.OutputFile(), help="Write the HTML report here, one file."
    ),
    click.option("--exit-code", is_flag=True, help="End with 1 where a case changed, broke, or was removed."),
    options.cache_option,
    options.store_mode_option,
    click.option(
        "--cluster",
        metavar="URL",
        help="A Dask scheduler, tcp://HOST:8786: its machines do the work (irdiff[cluster]).",
    ),
    options.limit_options,
)


def compare_options(function: Callable[..., Any]) -> Any:
    for option in reversed(_OPTIONS):
        function = option(function)
    return function
