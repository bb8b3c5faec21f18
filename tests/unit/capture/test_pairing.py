"""A failure stands for what it kept from being launched: nothing that broke reads as removed or added. And
which calls come in another order.
"""

import itertools
from dataclasses import replace
from operator import itemgetter
from types import SimpleNamespace

import pytest

from irdiff.capture import expected_endings, pairing, renames
from irdiff.capture.catalog import NOTHING
from irdiff.capture.pairing import CapturedWorkload
from irdiff.compare import cases
from irdiff.model import DEFAULT_OPTIONS, Argument, CaptureFailure, Sides, Verdict
from tests.texts import text_of
from tests.unit import runs
from tests.unit.golden import golden

GOLDEN = golden("pairing")
TARGET = runs.target()
NONE = Sides(base=None, head=None)
FAILURE = runs.failed(stage="capture", message="No module named 'torch'").failure


def failure(name, *, expected=True):
    return CaptureFailure(id=name, expected=expected, failure=FAILURE)


def match(base, head):
    return pairing.match(base, head, TARGET, Sides(base=True, head=True))


def verdict_of(pair):
    found = cases.one_sided(pair, NONE, {})
    return found.verdict, cases.compared(pair, found, cases.made(pair, NONE, found.verdict), None).error


def verdicts_of(rows):
    return {row.launch_id: verdict_of(row)[0] for row in rows}


@pytest.mark.parametrize("swapped", [False, True], ids=["at head", "at base"])
@pytest.mark.parametrize("row", GOLDEN["fails"], ids=str)
def test_what_failed_on_one_side_breaks_there(launch, row, swapped):
    sides = [[replace(launch, id=name) for name in row["ids"]], [failure(name) for name in row["fails"]]]
    rows = match(*(reversed(sides) if swapped else sides))
    assert [pair.launch_id for pair in rows] == row["ids"]
    wanted = (Verdict.FIXED, "base: ") if swapped else (Verdict.BROKEN, "head: ")
    assert {verdict_of(row) for row in rows} == {(wanted[0], wanted[1] + FAILURE.message)}


def test_the_nearest_failure_is_shown(launch):
    near = replace(failure("f/w:a"), failure=replace(FAILURE, message="near"))
    rows = match([replace(launch, id="f/w:a/k")], [failure("f/w:*"), near])
    assert verdicts_of(rows) == {
        "f/w:a/k": Verdict.BROKEN,
        "f/w:*": Verdict.FAILING,  # nothing is lost: it stands for no other
    }
    assert verdict_of(rows[0])[1] == "head: near"


@pytest.mark.parametrize("row", GOLDEN["one_side"], ids=str)
def test_what_one_side_launches_or_fails_to(launch, row):
    base, head = (
        [failure(name[1:]) if name[0] == "!" else replace(launch, id=name) for name in names]
        for names in (row["base"], row["head"])
    )
    assert verdicts_of(match(base, head)) == row["verdicts"]


@pytest.mark.parametrize("row", GOLDEN["moved"], ids=itemgetter("why"))
def test_the_fewest_calls_have_moved(launch, row):
    def launches(calls):
        places = {name: tuple(n for n, call in enumerate(calls, 1) if call == name) for name in calls}
        return tuple(replace(launch, id=f"a/b:c/{name}", places=places[name]) for name in sorted(places))

    catalogs = Sides(base=row["base"], head=row["head"]).map(
        lambda calls: replace(NOTHING, launches=launches(calls))
    )
    captured = CapturedWorkload(workload="a/b", target=TARGET, catalogs=catalogs)
    found = pairing.in_order(pairing.pairs([captured], DEFAULT_OPTIONS))
    assert {pair.launch_id.rpartition("/")[2] for pair in found if pair.moved} == set(row["moved"])


def test_a_pattern_selects_by_what_the_other_side_launches(launch):
    launched = replace(NOTHING, launches=tuple(replace(launch, id=f"a/b:{x}") for x in ("one", "two/k1")))
    failed = replace(NOTHING, failures=(failure("a/b:*"),))
    row = CapturedWorkload(workload="a/b", target=TARGET, catalogs=Sides(base=launched, head=failed))
    options = replace(DEFAULT_OPTIONS, cases=("a/b:two",), tiers=("core",))
    assert [pair.launch_id for pair in pairing.pairs([row], options)] == ["a/b:two/k1"]


def configs(launch, *warps, edited=False):
    """One launch for each; as after an edit of the kernel, of another input digest."""
    many = len(warps) > 1
    return [
        replace(launch, id=f"f/w:a/k#{number}" if many else "f/w:a", label="a", kernel="k",
                digest=f"{name}{' edited' * edited}", options={"num_warps": name})
        for number, name in enumerate(warps, 1)
    ]  # fmt: skip


@pytest.mark.parametrize("edited", [False, True])
@pytest.mark.parametrize("row", GOLDEN["configs"], ids=lambda row: f"{row['base']} to {row['head']}")
def test_a_config_is_matched_with_itself(launch, row, edited):
    base, head = configs(launch, *row["base"].split()), configs(launch, *row["head"].split(), edited=edited)
    found = []
    for pair in match(base, head):
        warps = (side.options["num_warps"] if side else "-" for side in (pair.base, pair.head))
        found.append(" ".join((pair.launch_id.removeprefix("f/w:a"), *warps)))
    assert sorted(found) == sorted(row["pairs"])


def test_an_equal_input_comes_before_an_equal_number(launch):
    """Launches that were specialized alike may read another global constant."""
    one, two = (replace(row, options={}) for row in configs(launch, "8", "4"))
    swapped = [replace(one, digest=two.digest), replace(two, digest=one.digest)]
    rows = match([one, two], swapped)
    assert [(row.launch_id, row.base) for row in rows] == [(two.id, one), (one.id, two)]


def test_no_launch_is_lost_or_used_twice(launch):
    choices = [row for n in range(4) for row in itertools.permutations(("8", "4", "2", "16"), n)]
    for before, after in itertools.product(choices, choices):
        base, head = configs(launch, *before), configs(launch, *after, edited=True)
        rows = match(base, head)
        assert len({row.launch_id for row in rows}) == len(rows)
        assert sorted(row.base.id for row in rows if row.base) == sorted(row.id for row in base)
        assert sorted(row.head.id for row in rows if row.head) == sorted(row.id for row in head)
        assert all(row.head is None or row.launch_id == row.head.id for row in rows)


BODY = text_of("pairing/body.py")


def make(workload, kernel, label="c", source=""):
    digest = source or f"{workload}/{kernel}"
    return runs.launch(f"{workload}:{label}@sm_90", kernel=kernel, source_digest=digest)


def text(launch):
    return BODY.replace("NAME", launch.kernel)


def nothing(launch):
    return ""


def entries(base, head):
    return Sides(
        base=frozenset((launch.workload, launch.label) for launch in base),
        head=frozenset((launch.workload, launch.label) for launch in head),
    )


def matched(base, head, base_source, head_source, others=()):
    """`others`: launches that both sides have."""
    return renames.match(base, head, entries((*base, *others), (*head, *others)), base_source, head_source)


def test_a_kernel_is_matched_by_its_source_or_its_text_and_else_not_guessed():
    moved = make("a/old", "k", source="s"), make("b/new", "k", source="s")
    renamed = make("a/old", "before"), make("b/new", "after")
    assert matched([moved[0]], [moved[1]], nothing, nothing) == {"a/old:c": "b/new:c"}
    assert matched([renamed[0]], [renamed[1]], text, text) == {"a/old:c": "b/new:c"}
    assert matched([renamed[0]], [renamed[1]], nothing, nothing) == {}


def test_what_one_workload_or_label_drops_and_another_gains_is_removed_and_added():
    drops, gains = make("a/one", "k", source="s"), make("a/two", "k", source="s")
    stay = make("a/one", "other"), make("a/two", "other")
    assert matched([drops], [gains], nothing, nothing, stay) == {}
    assert matched([drops], [gains], nothing, nothing, stay[:1]) == {}
    assert matched([drops], [gains], nothing, nothing) == {"a/one:c": "a/two:c"}
    drops, gains = make("a/one", "k", "c", source="s"), make("a/one", "k", "d", source="s")
    stay = make("a/one", "other", "c"), make("a/one", "other", "d")
    assert matched([drops], [gains], nothing, nothing, stay) == {}
    assert matched([drops], [gains], nothing, nothing) == {"a/one:c": "a/one:d"}


def test_launches_of_one_renamed_entry_stay_in_one():
    """`mul` leaves `one`, which is renamed, for what was `two`: something else is computed there now."""

    def named(workload, kernel):
        return replace(make(workload, kernel, source=kernel), id=f"{workload}:c/{kernel}")

    before = [named("a/one", "k"), named("a/one", "mul"), named("a/one", "sub"), named("a/two", "add")]
    after = [named("a/uno", "k"), named("a/uno", "sub"), named("a/due", "add"), named("a/due", "mul")]
    assert matched(before, after, nothing, nothing) == {
        "a/one:c/k": "a/uno:c/k",
        "a/one:c/sub": "a/uno:c/sub",
        "a/two:c/add": "a/due:c/add",
    }


def test_a_launch_of_a_renamed_kernel_has_its_place_among_the_others():
    """At base `mul` is the third call of its label; at head it has another name and is the second."""
    before = [replace(make("a/b", name, source=name), places=(n,)) for n, name in enumerate("kam", 1)]
    after = [replace(make("a/b", name, source=name), places=(n,)) for n, name in enumerate("kma", 1)]
    before = [replace(launch, id=f"a/b:c/{launch.kernel}") for launch in before]
    after = [replace(launch, id=f"a/b:c/{launch.kernel.replace('m', 'new')}") for launch in after]
    both = {launch.id: launch for launch in after}
    pairs = [runs.pair(f"{old.id}@sm_90", old, both.get(old.id)) for old in before]
    pairs.append(runs.pair("a/b:c/new@sm_90", None, both["a/b:c/new"]))
    joined = renames.join(pairs, entries(before, after), nothing, nothing)
    assert len(joined) == 3
    assert any(pair.moved for pair in pairing.in_order(joined))


def test_a_renamed_label_is_the_same_entry():
    """Labels are separate entries, so their names give their launches no order."""
    before, after = (
        [replace(make("a/b", kernel, label, source=kernel), places=(1,)) for kernel, label in labels]
        for labels in ((("k", "a"), ("m", "b")), (("k", "z"), ("m", "b")))
    )
    pairs = [runs.pair("a/b:a@sm_90", before[0], None), runs.pair("a/b:z@sm_90", None, after[0])]
    joined = renames.join(
        [*pairs, runs.pair("a/b:b@sm_90", before[1], after[1])], entries(before, after), nothing, nothing
    )
    assert [(pair.id, pair.moved) for pair in pairing.in_order(joined)] == [
        ("a/b:b@sm_90", False),
        ("a/b:z@sm_90", False),
    ]


def test_kernels_that_share_only_their_frame_are_two():
    before, after = make("a/old", "before"), make("b/new", "after")
    other = BODY.replace("exp(value) / (1 + exp(value))", "sin(value) - 4 * sqrt(abs(cos(value)) + 2)")

    def head(row):
        return other.replace("NAME", row.kernel)

    assert matched([before], [after], text, head) == {}
    same_file = replace(after, source_path=before.source_path)
    assert matched([before], [same_file], text, head) == {"a/old:c": "b/new:c"}


def test_pairs_are_joined_for_every_target():
    labels = ("fp16", "fp32")
    before, after = ([make(name, name[2:], label) for label in labels] for name in ("a/old", "b/new"))
    pairs = [
        runs.pair(f"{row.id}@{name}", row if row in before else None, row if row in after else None)
        for name in ("sm_90", "gfx942")
        for row in (*before, *after)
    ]
    joined = renames.join(pairs, entries(before, after), text, text)
    assert [pair.id for pair in joined] == [f"b/new:{x}@{y}" for x in labels for y in ("gfx942", "sm_90")]
    for pair in joined:
        assert pair.base is not None and pair.head is not None
        assert pair.base.id.partition(":")[2] == pair.head.id.partition(":")[2]


def test_the_options_of_a_launch_tell_configs_apart():
    old = [replace(make("a/old", "k", source="s"), options={"num_warps": "4"})]
    new = [
        replace(make("b/new", "k", source="s"), id=f"b/new:c/k#{n}", options={"num_warps": warps})
        for n, warps in ((1, "8"), (2, "4"))
    ]
    assert matched(old, new, text, text) == {"a/old:c": "b/new:c/k#2"}


def two_and_one(launch, **changes):
    """At base two launches, of a constant each; at head one kernel that both calls share."""
    one, two = (
        replace(launch, id=f"f/w:a/k{end}", label="a", places=(n,)) for n, end in ((1, ""), (2, "#2"))
    )
    return match([one, two], [replace(one, **{"places": (1, 2), **changes})])


def test_a_launch_that_shares_the_kernel_of_another_at_head_is_not_removed(launch):
    pairs = two_and_one(launch)
    kept, merged = pairing.without_merged(pairs)
    assert [pair.launch_id for pair in kept] == ["f/w:a/k"]
    assert merged == [f"f/w:a/k#2@{TARGET.name}"]


@pytest.mark.parametrize("changes", [{"kernel": "other"}, {"places": (1,)}, {"label": "b"}], ids=str)
def test_a_launch_whose_call_nothing_at_head_makes_is_removed(launch, changes):
    pairs = two_and_one(launch, **changes)
    assert pairing.without_merged(pairs) == (pairs, [])
    assert Verdict.REMOVED in {verdict_of(pair)[0] for pair in pairs if pair.head is None}


def test_the_first_of_several_launches_is_removed(launch):
    """The later ones move up by one place."""
    first, second, third = (
        replace(launch, id=f"f/w:a/k#{n}", label="a", places=(n,), constexprs={"B": str(n)}, digest=None)
        for n in (1, 2, 3)
    )
    moved = (replace(each, places=(each.places[0] - 1,)) for each in (second, third))
    pairs = match([first, second, third], list(moved))
    assert pairing.without_merged(pairs) == (pairs, [])


def test_a_launch_of_another_kernel_or_workload_is_removed(launch):
    for changes in ({"source_path": "other.py"}, {"workload": "f/other"}):
        pairs = two_and_one(launch)
        (alone,) = (pair for pair in pairs if pair.head is None)
        pairs[pairs.index(alone)] = replace(alone, base=replace(alone.base, **changes))
        assert pairing.without_merged(pairs) == (pairs, [])


def test_a_launch_with_other_tensors_is_removed(launch):
    tensor = replace(runs.blank(Argument), name="x", dtype="fp16", shape=(8,))
    pairs = two_and_one(replace(launch, arguments=(tensor,)), arguments=(replace(tensor, shape=(9,)),))
    assert pairing.without_merged(pairs) == (pairs, [])


TESTS_FAILED = "EndedEarly: pytest ended with 1: tests failed"


@pytest.mark.parametrize(
    ("base", "head", "is_left_out"),
    [
        (TESTS_FAILED, TESTS_FAILED, True),
        (TESTS_FAILED, None, False),
        (TESTS_FAILED, "EndedEarly: the program ended with 3", False),
        ("EndedEarly: the program ended with 1", "EndedEarly: the program ended with 1", False),
    ],
)
def test_tests_that_fail_on_both_sides_are_no_failing_case(launch, base, head, is_left_out):
    def ended(message):
        failure = replace(runs.failed().failure, message=message)
        return (
            [CaptureFailure(id="program/pytest:q/ended-early", expected=True, failure=failure)]
            if message
            else []
        )

    row = replace(launch, id="program/pytest:q/k", label="q")
    pairs = match([row, *ended(base)], [row, *ended(head)])
    kept, clauses = expected_endings.left_out(pairs, borrowing({}, {}))
    assert (len(kept), len(clauses)) == ((1, 1) if is_left_out else (2, 0))
    alone = [pair for pair in pairs if pair.id.rpartition("@")[0] != row.id]
    kept = expected_endings.left_out(alone, borrowing({}, {}))
    assert kept == (alone, ()), "nothing of the program was compared"


def borrowing(base, head):
    """Sides whose corpora run programs of another revision."""
    return Sides(base=base, head=head).map(
        lambda names: SimpleNamespace(corpus=SimpleNamespace(borrowed=names))
    )


@pytest.mark.parametrize(
    ("base", "head", "verdict"),
    [
        ({"program/run": "bench/run.py"}, {}, Verdict.ADDED),
        ({}, {}, Verdict.FIXED),
        ({"program/run": "bench/run.py"}, {"program/run": "bench/run.py"}, Verdict.FIXED),
        ({"program/other": "bench/other.py"}, {}, Verdict.FIXED),
    ],
)
def test_what_a_program_launches_that_base_lacks_is_new(launch, base, head, verdict):
    row = replace(launch, id="program/run:run/k", label="run")
    failure = replace(runs.failed().failure, stage="capture", message="EndedEarly: ImportError: no new")
    failed = CaptureFailure(id="program/run:*", expected=True, failure=failure)
    pairs, clauses = expected_endings.left_out(match([failed], [row]), borrowing(base, head))
    assert [verdict_of(pair)[0] for pair in pairs] == [verdict]
    said = "base has no bench/run.py, and that of head fails there (ImportError: no new)"
    assert bool(clauses) is (verdict is Verdict.ADDED)
    assert all(clause.startswith(said) for clause in clauses)
    if verdict is Verdict.ADDED:  # what head lacks, and base's program cannot run there, is gone
        gone, _ = expected_endings.left_out(match([row], [failed]), borrowing(head, base))
        assert [verdict_of(pair)[0] for pair in gone] == [Verdict.REMOVED]


def test_the_same_launches_may_need_fewer_compiled_kernels(launch):
    """A new kernel is no reason: the launches that both sides have are counted."""
    one, two, new = (
        replace(launch, id=f"f/w:a/k#{n}", label="a", places=(n,), digest=str(n)) for n in (1, 2, 3)
    )
    kernels = match([one, two], [replace(one, digest="x", places=(1, 2))])
    assert pairing.compiled_kernels(kernels) == Sides(base=2, head=1)
    assert pairing.compiled_kernels(match([one, two], [one, two, new])) == Sides(base=2, head=2)
    shared = match([one, two], [replace(one, digest="x"), replace(two, digest="x")])
    assert pairing.compiled_kernels(shared) == Sides(base=2, head=1)
    assert pairing.compiled_kernels(match([one], [replace(one, digest=None)])) == Sides(base=1, head=0)
