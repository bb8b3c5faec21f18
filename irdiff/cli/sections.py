from __future__ import annotations

from collections.abc import Mapping, Sequence

import click


def command(sections: Mapping[str, Sequence[str]]) -> type[click.Command]:
    """Returns a command class whose help has these sections, each with its options by their long names.
    Options that no section names come last.
    """

    class Sectioned(click.Command):
        def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
            left = {
                next(name for name in option.opts if name.startswith("--")): record
                for option in self.get_params(ctx)
                if isinstance(option, click.Option) and (record := option.get_help_record(ctx))
            }
            for title, names in sections.items():
                with formatter.section(title):
                    formatter.write_dl([left.pop(name) for name in names])
            with formatter.section("Other options"):
                formatter.write_dl(list(left.values()))

    return Sectioned
