from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, partial
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from irdiff.backends.stages import in_stage_order
from irdiff.report import escape
from irdiff.words import shortened

_HEADLINE_CHARACTERS = 4000


def folder() -> Path:
    """Lies inside an installed wheel, or in the checkout."""
    package = Path(str(resources.files("irdiff")))
    inside = package / "_shipped"
    return (inside if inside.is_dir() else package.parent) / "reports"


@cache
def markdown() -> jinja2.Environment:
    """Escapes each expression, unless it passed through `code`, `fence` or `html`."""
    environment = _environment(autoescape=False)
    environment.finalize = _markdown_by_default
    environment.filters["code"] = _marked(escape.code)
    environment.filters["fence"] = _marked(escape.fence)
    environment.filters["html"] = _marked(escape.github_html)
    environment.filters["prose"] = _prose(escape.markdown, escape.code)
    environment.filters["html_prose"] = _prose(
        escape.github_html, lambda part: f"<code>{escape.github_html(part)}</code>"
    )
    environment.filters["made"] = Markup  # of a macro, which escapes what it prints
    environment.filters["clip"] = _marked(lambda text, limit: escape.markdown(shortened(text, limit)))
    return environment


@cache
def html() -> jinja2.Environment:
    """Escapes each expression; `clean` first spells out invisible characters."""
    environment = _environment(autoescape=True)
    environment.finalize = _clean_by_default
    environment.filters["json"] = _marked(escape.script_json)
    environment.filters["id"] = _marked(lambda text: re.sub("([/:])", r"\1<wbr>", escape.html(text)))
    environment.filters["plain"] = _marked(escape.html)
    environment.filters["prose"] = _prose(escape.html, lambda part: f"<code>{escape.html(part)}</code>")
    return environment


def _environment(*, autoescape: bool) -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder()),
        autoescape=autoescape,  # noqa: S701 - Markdown is escaped by `_markdown_by_default`
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["in_stage_order"] = in_stage_order
    environment.globals["headline_characters"] = _HEADLINE_CHARACTERS
    return environment


def _marked(function: Callable[..., str]) -> Callable[..., Markup]:
    def apply(*arguments: Any, **options: Any) -> Markup:
        return Markup(function(*arguments, **options))  # noqa: S704 - what the escape functions are for

    return apply


def _prose(plain: Callable[..., str], quoted: Callable[[str], str]) -> Callable[..., Markup]:
    """Formats parts in backticks as code, as in titles of groups."""

    def apply(text: str, limit: int = escape.LINE_LIMIT) -> Markup:
        parts = escape.clean(text, limit=limit).split("`")
        if len(parts) % 2 == 0 or not all(parts[1:-1]):
            return Markup(plain(text, limit=limit))  # noqa: S704
        shown = (
            quoted(part) if place % 2 else _keeping_ends(part, partial(plain, limit=limit))
            for place, part in enumerate(parts)
            if part
        )
        return Markup("".join(shown))  # noqa: S704

    return apply


def _keeping_ends(part: str, plain: Callable[..., str]) -> str:
    """Keeps the blanks at both ends, which stand between words."""
    before = " " if part[:1] == " " else ""
    after = " " if part.strip() and part[-1:] == " " else ""
    return before + plain(part.strip()) + after


def _markdown_by_default(value: object) -> object:
    return value if isinstance(value, (Markup, int)) else escape.markdown(value)


def _clean_by_default(value: object) -> object:
    return value if isinstance(value, (Markup, int)) else escape.clean(value)
