"""`irdiff completion SHELL`: what a shell must run to complete commands, runs, groups, cases and targets."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from irdiff.errors import ExitCode, UsageError

_VARIABLE = "_IRDIFF_COMPLETE"
_SHELLS = ("bash", "zsh", "fish")


@click.command("completion")
@click.argument("shell", type=click.Choice(_SHELLS))
def completion_command(shell: str) -> int:
    r"""Print the completion of a SHELL, to be kept where that shell looks for it.

    \b
    bash  irdiff completion bash > ~/.local/share/bash-completion/completions/irdiff
    zsh   irdiff completion zsh > "${fpath[1]}/_irdiff"
    fish  irdiff completion fish > ~/.config/fish/completions/irdiff.fish
    """
    from irdiff.cli import cli

    found = get_completion_class(shell)
    if found is None:
        raise UsageError(f"the installed click completes nothing for {shell}")
    click.echo(found(cli, {}, "irdiff", _VARIABLE).source())
    return ExitCode.DONE
