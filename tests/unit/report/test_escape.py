import html.parser
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from irdiff.report import escape
from tests.unit.golden import golden

HOSTILE = [*golden("hostile")["words"], "\ud800 lone"]
ANY_TEXT = st.text(alphabet=st.characters(exclude_categories=[]), max_size=60) | st.sampled_from(HOSTILE)
# GitHub's own patterns look at text that Markdown and entities are already gone from.
MENTION = re.compile(r"(?<![0-9A-Za-z])@[0-9A-Za-z]")
REFERENCE = re.compile(r"#\d|GH-\d")


class _Text(html.parser.HTMLParser):
    """The text of an HTML document, and the tags in it; what is in code is kept apart."""

    def __init__(self, content):
        super().__init__(convert_charrefs=True)
        self.tags = []
        self.prose = self.all = ""
        self._code = 0
        self.feed(content)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self._code += tag == "code"

    def handle_endtag(self, tag):
        self._code -= tag == "code"

    def handle_data(self, data):
        self.all += data
        if not self._code:
            self.prose += data


def _rendered(markdown):
    return _Text(MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(markdown))


def test_clean_spells_out_what_cannot_be_seen():
    assert escape.clean("\x1b[31mred\x00\u202e") == r"\x1b[31mred\x00\u202e"
    assert escape.clean("\ud800") == r"\ud800"
    assert escape.clean("e\u0301te\u0301") == "e\u0301te\u0301"
    assert escape.clean("z" + "\u0301" * 5).count(r"\u0301") == 3
    assert escape.clean("a\nb") == "a b"
    assert escape.clean("x" * 1000) == "x" * 399 + "…"


@given(ANY_TEXT)
@pytest.mark.parametrize("frame", ["{}", "# {}", "- {} and", "| a | b |\n|---|---|\n| {} | x |"])
def test_markdown_text_is_only_text(frame, text):
    plain = _rendered(frame.replace("{}", "word"))
    seen = _rendered(frame.replace("{}", escape.markdown(text)))
    assert [tag for tag in seen.tags if tag not in plain.tags] == []
    assert seen.tags.count("td") == plain.tags.count("td")
    assert not MENTION.search(seen.all)
    assert not REFERENCE.search(seen.all)
    assert not re.search("[a-z]://", seen.all, re.IGNORECASE)
    assert not re.search("www[.]", seen.all, re.IGNORECASE)


def test_markdown_text_reads_as_it_was():
    seen = _rendered(escape.markdown("convert_layout 3 → 5 (a|b) *x* <T> & 1.5"))
    assert seen.all.strip() == "convert_layout 3 → 5 (a|b) *x* <T> & 1.5"


@given(ANY_TEXT)
@pytest.mark.parametrize("frame", ["{}", "see {} here", "| a | b |\n|---|---|\n| {} | x |"])
def test_code_is_one_code_span(frame, text):
    seen = _rendered(frame.replace("{}", escape.code(text)))
    assert seen.tags.count("code") == 1
    assert seen.tags.count("td") in {0, 2}
    assert set(seen.tags) <= {"p", "code", "table", "thead", "tbody", "tr", "th", "td"}
    expected = re.sub(r"\s+", " ", escape.clean(text).strip())
    assert expected in re.sub(r"\s+", " ", seen.all)
    assert not MENTION.search(seen.prose)


@given(st.lists(ANY_TEXT, max_size=5))
def test_nothing_ends_a_fence(lines):
    seen = _rendered(escape.fence(lines, "diff") + "\n\nafter")
    assert seen.tags == ["pre", "code", "p"]
    assert seen.prose.strip() == "after"


@given(ANY_TEXT)
def test_whatever_a_text_says_it_is_a_line_and_no_markup_and_nothing_that_a_runner_obeys(text):
    clean = escape.clean(text)
    assert len(clean) <= escape.LINE_LIMIT and clean.isprintable()
    clean.encode()
    line = escape.terminal(text)
    assert not line.lstrip().startswith("::") and "##[" not in line
    shown = escape.html(text)
    assert (_Text(shown).tags, _Text(shown).all) == ([], clean)
    assert _Text(f'<a title="{shown}">').tags == ["a"]
    shown = escape.github_html(text)
    assert not re.search(r"[<>`*_\[\]|\\@]", shown)
    seen = _rendered(f"<details><summary>{shown}</summary>\n\nx\n\n</details>")
    assert seen.tags == ["details", "summary", "p"]
    assert not MENTION.search(seen.all)
    content = escape.script_json({"a": text})
    assert not re.search("[<>&]", content)
    assert json.loads(content) == {"a": text}
