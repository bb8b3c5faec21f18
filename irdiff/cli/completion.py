"""`irdiff completion SHELL`: what a shell must run to complete commands, runs, groups, cases and targets."""

from __future__ import annotations

import click
from click.shell_completion import BashComplete, get_completion_class

from irdiff.errors import UsageError

_VARIABLE = "_IRDIFF_COMPLETE"
_SHELLS = ("bash", "zsh", "fish")

_BASH = r"""%(complete_func)s() {
    local IFS=$'\n' rest=$COMP_LINE
    local index word blanks completion type value response cword=0
    local -a words=()

    for index in "${!COMP_WORDS[@]}"; do
        word=${COMP_WORDS[index]}
        [[ $rest =~ ^[[:space:]]* ]]
        blanks=${#BASH_REMATCH[0]}
        if ((index > 0 && blanks == 0)); then
            words[-1]+=$word
        else
            words+=("$word")
        fi
        rest=${rest:blanks+${#word}}
        ((index == COMP_CWORD)) && cword=$((${#words[@]} - 1)) && break
    done

    word=${words[cword]}
    word=${word:0:${#word}-${#2}}
    [[ $word == --*=* ]] && word=${word#*=}

    response=$(env COMP_WORDS="${words[*]}" COMP_CWORD=$cword %(complete_var)s=bash_complete $1)
    for completion in $response; do
        IFS=',' read -r type value <<< "$completion"
        if [[ $type == 'dir' ]]; then
            COMPREPLY=()
            compopt -o dirnames
        elif [[ $type == 'file' ]]; then
            COMPREPLY=()
            compopt -o default
        elif [[ $type == 'plain' ]]; then
            COMPREPLY+=("${value#"$word"}")
        fi
    done
    return 0
}

complete -o nosort -F %(complete_func)s %(prog_name)s
"""


class _Bash(BashComplete):
    """bash takes `triton==3.8` and `g:b140` apart (COMP_WORDBREAKS) and replaces the last part, `$2`, alone.

    Words with no blank between them are put together again, and what comes before that part is left out of
    each answer: `_get_comp_words_by_ref` and `__ltrim_colon_completions` of the package bash-completion do
    the same. What an option's `--name=` is followed by, click completes without the name.
    """

    source_template = _BASH


@click.command("completion")
@click.argument("shell", type=click.Choice(_SHELLS))
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
    click.echo(found(cli, {}, "irdiff", _VARIABLE).source())
