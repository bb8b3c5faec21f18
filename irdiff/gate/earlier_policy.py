from __future__ import annotations

from collections.abc import Iterator, Mapping

from irdiff.errors import UsageError

_EARLIER = "irdiff-policy/1"
_KINDS = {
    "slower": 'kind = "cost" and measured_only = true',
    "timed": 'kind = "coverage" and requires = "timed"',
    "reach": 'kind = "coverage" and requires = "launched"',
    "wrong-result": 'kind = "meaning" and meanings = ["wrong outputs"]',
    "nondeterministic": 'kind = "fact" and facts = ["deterministic"]',
    "fits": 'kind = "fact" and facts = ["fits"]',
    "compile-time": 'kind = "fact" and facts = ["compile_s"], with more_than (in seconds) for more_than_s '
    "and more_than_percent for percent",
    "radius": 'kind = "verdict" and verdicts = ["changed"], with more_than_percent for percent',
}
_ACCEPTABLE = 'action = "review" if accepted change groups settle it, else action = "deny", for acceptable'
_WAIVER = (
    "[[waiver]] is now [[accepted]] in irdiff-accepted.toml, next to the policy, with the same keys and "
    "`on`, the day on which it was accepted"
)


def refuse(tables: Mapping[str, object], where: str) -> None:
    """Raises UsageError for a policy with an earlier spelling."""
    earlier = list(_earlier(tables))
    if earlier:
        listed = "\n  ".join(earlier)
        raise UsageError(
            f"{where} is a policy of an earlier irdiff. What to write now:\n  {listed}",
            hint="irdiff/gate/README.md lists the five kinds of rules",
        )


def _earlier(tables: Mapping[str, object]) -> Iterator[str]:
    if tables.get("schema") == _EARLIER:
        yield 'schema = "irdiff-policy/2"'
    rules = tables.get("rule")
    for rule in rules if isinstance(rules, list) else ():
        if not isinstance(rule, dict):
            continue
        kind = rule.get("kind")
        if isinstance(kind, str) and kind in _KINDS:
            yield f'rule {str(rule.get("id"))[:60]!a}: {_KINDS[kind]}, for kind = "{kind}"'
        if "acceptable" in rule:
            yield f"rule {str(rule.get('id'))[:60]!a}: {_ACCEPTABLE}"
    if "waiver" in tables:
        yield _WAIVER
