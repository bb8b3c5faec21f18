"""What is known of one backend, or of one IR, has its home in `backends/` or `ir/`: code elsewhere asks there."""

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "irdiff"
HOMES = {"ir", "backends", "worker"}
ALLOWED = {
    "model.py": "the names of components and of a field of run.json, which readers of old runs know",
    "config.py": "variables of compilers are kept from workers before anything is known of a backend; "
    "what imports the list of backends is made anew with them",
    "resolve/targets.py": "the targets that are compared where a user names none",
    "worker_client/diagnosis.py": "reads what any program of a compiler prints; compiled results must not be made "
    "anew with the list of backends",
    "effects/floats.py": "what an operation of each IR computes, by its name",
}
"""Other modules whose code names one, and why."""
NAME = re.compile(
    r"nvidia|nvptx|nvdisasm|cuda|cubin|hsaco|rocm|(?<![a-z])(?:ptx(?:as)?|sass|hip)(?![a-z])"
    r"|(?<![a-z])amd(?:g|gpu|hsa|gcn)?(?![a-z])|(?<![a-z])sm_\d|gfx\d",
    re.IGNORECASE,
)
"""A backend, one of its texts, binaries, tools or GPUs, as a word of its own."""
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
_TEXTS = {tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}


def names(text):
    """In identifiers and strings of code: docstrings and comments may give examples."""
    if not NAME.search(_HUMP.sub("_", text)):
        return []
    tree = ast.parse(text)
    docstrings = {
        node.value.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    found = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME:
            words = _HUMP.sub("_", token.string)
        elif token.type in _TEXTS and token.start[0] not in docstrings:
            words = token.string
        else:
            continue
        found += NAME.findall(words)
    return found


@pytest.mark.slow
def test_a_backend_is_named_in_its_home_alone():
    modules = [path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py") if "_shipped" not in path.parts]
    elsewhere = {str(path) for path in modules if path.parts[0] not in HOMES}
    naming = {path for path in elsewhere if names((PACKAGE / path).read_text(encoding="utf-8"))}
    assert naming == ALLOWED.keys()
    assert len(ALLOWED) <= 5


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("HipDevice = of_ptx", ["Hip", "ptx"]),
        ("x = 'gfx950', 'sm_90a', f'{y}.cubin'", ["gfx9", "sm_9", "cubin"]),
        ("from irdiff.backends import amd", ["amd"]),
        ("disassembly = passage = relationship = 'chip'", []),
        ('def f():\n    """Of PTX."""  # and of SASS\n', []),
    ],
)
def test_names(text, found):
    assert names(text) == found
