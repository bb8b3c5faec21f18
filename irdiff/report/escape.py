"""Escapes foreign text for the place where it is shown. Every report prints strings of a run through this
module.

A run folder may come from an attacker. So kernel names, messages, edits and versions may hold terminal
escapes, HTML, Markdown, `@mentions` that ping people, `#1` that writes into other issues, bidirectional
overrides that hide the real code, and lines that a GitHub runner takes for commands.

    one line    several lines
    clean       clean_lines      plain text without control or invisible characters
    terminal                     for a terminal or a job's log
    markdown                     for Markdown text, also in a table cell or a heading
    code        fence            for Markdown code: use it for ids and names, which readers copy
    github_html                  for HTML within Markdown, such as `<summary>`
    html                         for HTML text and quoted attributes of a page (do not escape it again)
    url                          for the target of a Markdown link
    script_json                  for JSON inside a `<script>` element

With rich, pass the result as `rich.text.Text` (or `markup=False`): brackets are not escaped. In a Jinja2
template with autoescaping use `clean` as the filter; `html` would escape twice.
"""

from __future__ import annotations

import html as _html
import json
import re
from collections.abc import Iterable

from irdiff.diffs.visible import LINE_LIMIT, clean, clean_lines

__all__ = [
    "LINE_LIMIT", "clean", "clean_lines", "code", "fence", "github_html", "html", "markdown",
    "script_json", "terminal", "url",
]  # fmt: skip

_ZERO_WIDTH_SPACE = "\u200b"
"""After `@` or `#` it breaks GitHub's pattern of a mention. Entities would not: they are decoded first."""
_RUNNER_COMMAND = re.compile(r"^(\s*):(?=:)|#(?=#\[)")


def terminal(text: object, *, limit: int = LINE_LIMIT) -> str:
    """Also escapes the log of a job: GitHub's runner obeys lines like `::add-mask::`."""
    return _RUNNER_COMMAND.sub(lambda match: match[0] + "\\", clean(text, limit=limit))


_MARKDOWN = {
    **{ord(mark): f"\\{mark}" for mark in r"\`*_[]|~^$"},
    ord("&"): "&amp;",
    ord("<"): "&lt;",
    ord(">"): "&gt;",
    ord("@"): "@" + _ZERO_WIDTH_SPACE,
    ord("#"): "#" + _ZERO_WIDTH_SPACE,
}
_AUTOLINK = re.compile(r"(?<=[a-zA-Z]):(?=//)|(?<=www)\.|(?<=GH)-|(?<=mailto):|(?<=xmpp):", re.IGNORECASE)
_BLOCK_START = re.compile(r"^(\s*)([-+=]|\d{1,9}(?=[.)](?:\s|$)))")


def markdown(text: object, *, limit: int = LINE_LIMIT) -> str:
    """Leaves no markup, link, mention or reference to an issue for GitHub to see."""
    escaped = clean(text, limit=limit).strip().translate(_MARKDOWN)
    escaped = _AUTOLINK.sub(lambda match: _ZERO_WIDTH_SPACE + match[0] + _ZERO_WIDTH_SPACE, escaped)
    return _BLOCK_START.sub(lambda match: f"{match[1]}&#{ord(match[2][0])};{match[2][1:]}", escaped)


def code(text: object, *, limit: int = LINE_LIMIT) -> str:
    """Formats a code span for text or a table cell. GitHub ignores mentions in code."""
    content = clean(text, limit=limit).strip() or " "
    if "`" in content or "|" in content or "\\" in content:
        # Neither a longer fence nor `\\|` is right both in and out of tables: as HTML, spelled in entities.
        return f"<code>{''.join(map(_entity, content))}</code>"
    return f"`{content}`"


def _entity(character: str) -> str:
    if character.isalnum() or character in " ,;" or ord(character) > 0x7F:
        return character
    return f"&#{ord(character)};"


def fence(lines: Iterable[str], language: str = "", *, limit: int = LINE_LIMIT, max_lines: int = 400) -> str:
    """The content cannot end the block."""
    shown = clean_lines("\n".join(lines), limit=limit, max_lines=max_lines)
    longest = max((len(run) for line in shown for run in re.findall("`+", line)), default=0)
    marks = "`" * max(3, longest + 1)
    return "\n".join([marks + re.sub("[^a-z0-9-]", "", language), *shown, marks])


def html(text: object, *, limit: int = LINE_LIMIT) -> str:
    return _html.escape(clean(text, limit=limit), quote=True).replace("`", "&#96;")


def github_html(text: object, *, limit: int = LINE_LIMIT) -> str:
    shown = "".join(map(_entity, clean(text, limit=limit)))
    return shown.replace("&#64;", "&#64;" + _ZERO_WIDTH_SPACE).replace("&#35;", "&#35;" + _ZERO_WIDTH_SPACE)


def url(text: str) -> str:
    """Returns an https address, or nothing."""
    if not re.fullmatch(r"https://[!-~]+", text):
        return ""
    return re.sub(r"[()<>\[\]\\\"'`|*_~]", lambda match: f"%{ord(match[0]):02X}", text)


def script_json(value: object) -> str:
    """The JSON cannot end its `<script>` element, nor start a comment there."""
    content = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"), sort_keys=True)
    return content.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
