"""Shell completion: what a shell offers for sides, targets and cases, and `irdiff completion SHELL`.

Only what is on this machine is offered; nothing is installed for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click
from click.shell_completion import BashComplete, get_completion_class

from irdiff import config as configuration
from irdiff.config import Config
from irdiff.errors import IrdiffError, UsageError


def sides(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """The installed releases."""
    from irdiff.resolve.toolchains import environments

    specs = {str(row.state["spec"]) for row in environments.list_all(_config(context))}
    return _matching(sorted(spec for spec in specs if spec.startswith("triton==")), incomplete)


def target_names(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    return _matching(["all", *_targets(context)], incomplete)


def workloads(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Workloads, and behind a `@` the targets. Labels are known only once a workload has run."""
    from irdiff.resolve import corpus

    before, at, target = incomplete.partition("@")
    if at:
        return [f"{before}@{name}" for name in _matching(_targets(context), target)]
    root = context.params.get("corpus") or _config(context).shipped / "corpus"
    try:
        names = corpus.load(Path(root)).workloads
    except IrdiffError:
        return []
    return _matching(names, incomplete) or [
        name for name in names if name.partition("/")[2].startswith(incomplete)
    ]


def _targets(context: click.Context) -> list[str]:
    folders = (_config(context).shipped / "targets", context.params.get("targets_dir"))
    return [path.stem for folder in folders if folder for path in sorted(Path(folder).glob("*.toml"))]


def _config(context: click.Context) -> Config:
    return configuration.load(cache=context.params.get("cache"))


def _matching(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]


# the command

_BASH = r"""%(complete_func)s() {
    local IFS=$'\n' rest=$COMP_LINE index word blanks cword=0
    local -a words=()
    for index in "${!COMP_WORDS[@]}"; do
        word=${COMP_WORDS[index]}
        [[ $rest =~ ^[[:space:]]* ]]
        blanks=${#BASH_REMATCH[0]}
        ((index > 0 && blanks == 0)) && words[-1]+=$word || words+=("$word")
        rest=${rest:blanks+${#word}}
        ((index == COMP_CWORD)) && cword=$((${#words[@]} - 1)) && break
    done
    word=${words[cword]}
    word=${word:0:${#word}-${#2}}
    [[ $word == --*=* ]] && word=${word#*=}
    COMPREPLY=()
    while IFS=',' read -r type value; do
        case $type in
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
            plain) COMPREPLY+=("${value#"$word"}") ;;
        esac
    done < <(env COMP_WORDS="${words[*]}" COMP_CWORD=$cword %(complete_var)s=bash_complete $1)
}

complete -o nosort -F %(complete_func)s %(prog_name)s
"""


class _Bash(BashComplete):
    """bash takes `triton==3.8` and `g:b140` apart (COMP_WORDBREAKS) and replaces the last part, `$2`, alone.

    The script joins words with no blank between them again, and leaves out of each answer what comes before
    the last part, as `_get_comp_words_by_ref` and `__ltrim_colon_completions` of the package bash-completion
    do. click completes the value of `--name=VALUE` without the name.
    """

    source_template = _BASH


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion_command(shell: str) -> None:
    """Print the completion of a SHELL, to be kept where that shell looks for it.

    \b
    bash  irdiff completion bash > ~/.local/share/bash-completion/completions/irdiff
    zsh   irdiff completion zsh > "${fpath[1]}/_irdiff"
    fish  irdiff completion fish > ~/.config/fish/completions/irdiff.fish
    """  # noqa: D301 - click takes the character, and a raw string would hold two
    from irdiff.cli import cli

    found = _Bash if shell == "bash" else get_completion_class(shell)
    if found is None:
        raise UsageError(f"the installed click completes nothing for {shell}")
    click.echo(found(cli, {}, "irdiff", "_IRDIFF_COMPLETE").source())
