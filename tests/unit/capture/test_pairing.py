"""A failure stands for what it kept from being launched: nothing that broke reads as removed or added. And
which calls come in another order.
"""

import itertools
from dataclasses import replace

import pytest

from irdiff.capture import pairing, renames
from irdiff.capture.catalogs import NOTHING
from irdiff.capture.pairing import CapturedWorkload
from irdiff.compare import cases
from irdiff.model import DEFAULT_OPTIONS, CaptureFailure, Launch, Sides, Verdict
from tests.unit import runs

TARGET = runs.target()
FAILURE = runs.failed(stage="capture", message="No module named 'torch'").failure


def failure(name, *, expected=True):
    return CaptureFailure(id=name, expected=expected, failure=FAILURE)


def verdict_of(matched):
    pair = pairing._pair(matched, TARGET, Sides(base=True, head=True))
    case = cases.one_sided(pair, Sides(base=None, head=None))
    return case.verdict, case.error


def verdicts_of(rows):
    return {row.id: verdict_of(row)[0] for row in rows}


@pytest.mark.parametrize("swapped", [False, True], ids=["at head", "at base"])
@pytest.mark.parametrize(
    ("ids", "fails"),
    [
        (["f/w:a", "f/w:b"], ["f/w:*"]),
        (["f/w:a/k1", "f/w:a/k2"], ["f/w:a"]),
        (["f/w:a/k1#1", "f/w:a/k1#2"], ["f/w:a"]),
        (["f/w:a/k1", "f/w:a/b/k2"], ["f/w:a", "f/w:a/b"]),
        (["f/w:a"], ["f/w:a"]),
    ],
)
def test_what_failed_on_one_side_breaks_there(launch, ids, fails, swapped):
    sides = [[replace(launch, id=name) for name in ids], [failure(name) for name in fails]]
    rows = pairing.match(*(reversed(sides) if swapped else sides))
    assert [row.id for row in rows] == ids
    wanted = (Verdict.FIXED, "base: ") if swapped else (Verdict.BROKEN, "head: ")
    assert {verdict_of(row) for row in rows} == {(wanted[0], wanted[1] + FAILURE.message)}


def test_the_nearest_failure_is_shown(launch):
    near = replace(failure("f/w:a"), failure=replace(FAILURE, message="near"))
    rows = pairing.match([replace(launch, id="f/w:a/k")], [failure("f/w:*"), near])
    assert verdicts_of(rows) == {
        "f/w:a/k": Verdict.BROKEN,
        "f/w:*": Verdict.FAILING,  # nothing is lost: it stands for no other
    }
    assert verdict_of(rows[0])[1] == "head: near"


@pytest.mark.parametrize(
    ("base", "head", "wanted"),
    [
        (["!f/w:a", "!f/w:b"], ["!f/w:*"], {"f/w:a": Verdict.FAILING, "f/w:b": Verdict.FAILING}),
        (["!f/w:*"], ["!f/w:*"], {"f/w:*": Verdict.FAILING}),
        ([], ["!f/w:*"], {"f/w:*": Verdict.FAILING}),  # what is new and does not compile is not added
        (["!f/w:a"], [], {"f/w:a": Verdict.REMOVED}),
        (["f/w:gone"], ["f/w:new"], {"f/w:gone": Verdict.REMOVED, "f/w:new": Verdict.ADDED}),
        # a failure of another label stands for nothing else
        (["f/w:ab"], ["!f/w:a"], {"f/w:ab": Verdict.REMOVED, "f/w:a": Verdict.FAILING}),
        # a label that fails after a launch has failed
        (["f/w:a"], ["f/w:a", "!f/w:a"], {"f/w:a": Verdict.BROKEN}),
    ],
)
def test_what_one_side_launches_or_fails_to(launch, base, head, wanted):
    def rows(names):
        return [failure(name[1:]) if name[0] == "!" else replace(launch, id=name) for name in names]

    assert verdicts_of(pairing.match(rows(base), rows(head))) == wanted


@pytest.mark.parametrize(
    ("base", "head", "moved"),
    [
        ("abc", "abc", ""),
        ("ab", "ba", "b"),
        ("abcd", "bcda", "a"),
        ("abcd", "dabc", "d"),
        ("abc", "axbc", ""),
        ("axbc", "abc", ""),
        ("aab", "ab", "a"),
        ("aba", "aab", "a"),
    ],
    ids=["same", "swap", "to the end", "to the front", "inserted", "removed", "once less", "between"],
)
def test_the_fewest_calls_have_moved(launch, base, head, moved):
    """Each letter is a call of the launch of that name, in the order of one entry."""

    def launches(calls):
        return tuple(
            replace(
                launch,
                id=f"a/b:c/{name}",
                places=tuple(place for place, call in enumerate(calls, 1) if call == name),
            )
            for name in sorted(set(calls))
        )

    catalogs = Sides(base=base, head=head).map(lambda calls: replace(NOTHING, launches=launches(calls)))
    rows = pairing.pairs(
        [CapturedWorkload(workload="a/b", target=TARGET, catalogs=catalogs)], DEFAULT_OPTIONS
    )
    assert {pair.launch_id.rpartition("/")[2] for pair in rows if pair.moved} == set(moved)


def test_a_pattern_selects_by_what_the_other_side_launches(launch):
    launched = replace(NOTHING, launches=tuple(replace(launch, id=f"a/b:{x}") for x in ("one", "two/k1")))
    failed = replace(NOTHING, failures=(failure("a/b:*"),))
    row = CapturedWorkload(workload="a/b", target=TARGET, catalogs=Sides(base=launched, head=failed))
    options = replace(DEFAULT_OPTIONS, cases=("a/b:two",), tiers=("core",))
    assert [pair.launch_id for pair in pairing.pairs([row], options)] == ["a/b:two/k1"]


A, B, C, N = "8 warps", "4 warps", "2 warps", "16 warps"


def configs(launch, *warps, edited=False):
    """One launch for each; as after an edit of the kernel, of another input digest."""
    many = len(warps) > 1
    return [
        replace(
            launch,
            id=f"f/w:a/k#{number}" if many else "f/w:a",
            label="a",
            kernel="k",
            digest=f"{name}{' edited' * edited}",
            options={"num_warps": name},
        )
        for number, name in enumerate(warps, 1)
    ]


def warps_of(rows):
    return {
        row.id.removeprefix("f/w:a"): (
            row.base.options["num_warps"] if isinstance(row.base, Launch) else None,
            row.head.options["num_warps"] if isinstance(row.head, Launch) else None,
        )
        for row in rows
    }


@pytest.mark.parametrize("edited", [False, True])
@pytest.mark.parametrize(
    ("base", "head", "wanted"),
    [
        ((A, B), (N, A, B), {"/k#1": (None, N), "/k#2": (A, A), "/k#3": (B, B)}),
        ((A, B), (B, A), {"/k#1": (B, B), "/k#2": (A, A)}),
        ((A, B), (B,), {"": (B, B), "/k#1": (A, None)}),
        ((B,), (A, B), {"/k#1": (None, A), "/k#2": (B, B)}),
        ((A, B, C), (B, C), {"/k#1": (B, B), "/k#2": (C, C), "/k#1-at-base": (A, None)}),
        ((A, B), (N, B), {"/k#1": (A, N), "/k#2": (B, B)}),
        ((A, B), (N, A), {"/k#1": (None, N), "/k#2": (A, A), "/k#2-at-base": (B, None)}),
        ((A,), (N,), {"": (A, N)}),
    ],
)
def test_a_config_is_matched_with_itself(launch, base, head, wanted, edited):
    rows = pairing.match(configs(launch, *base), configs(launch, *head, edited=edited))
    assert warps_of(rows) == wanted


def test_an_equal_input_comes_before_an_equal_number(launch):
    """Launches that were specialized alike may read another global constant."""
    one, two = (replace(row, options={}) for row in configs(launch, A, B))
    swapped = [replace(one, digest=two.digest), replace(two, digest=one.digest)]
    rows = pairing.match([one, two], swapped)
    assert [(row.id, row.base) for row in rows] == [(two.id, one), (one.id, two)]


def test_no_launch_is_lost_or_used_twice(launch):
    names = (A, B, C, N)
    choices = [row for count in range(4) for row in itertools.permutations(names, count)]
    for before, after in itertools.product(choices, choices):
        base, head = configs(launch, *before), configs(launch, *after, edited=True)
        rows = pairing.match(base, head)
        assert len({row.id for row in rows}) == len(rows)
        assert sorted(row.base.id for row in rows if row.base) == sorted(row.id for row in base)
        assert sorted(row.head.id for row in rows if row.head) == sorted(row.id for row in head)
        assert all(row.head is None or row.id == row.head.id for row in rows)


BODY = """def NAME(x, out, n, BLOCK):
    offsets = program_id(0) * BLOCK + arange(0, BLOCK)
    mask = offsets < n
    value = load(x + offsets, mask=mask)
    store(out + offsets, exp(value) / (1 + exp(value)), mask=mask)
"""


def make(workload, kernel, label="c", source=""):
    digest = source or f"{workload}/{kernel}"
    return runs.launch(f"{workload}:{label}@sm_90", kernel=kernel, source_digest=digest)


def text(launch):
    return BODY.replace("NAME", launch.kernel)


def nothing(launch):
    return ""


def test_a_kernel_is_matched_by_its_source_or_its_text_and_else_not_guessed():
    moved = make("a/old", "k", source="s"), make("b/new", "k", source="s")
    renamed = make("a/old", "before"), make("b/new", "after")
    assert renames.match([moved[0]], [moved[1]], nothing, nothing) == {"a/old:c": "b/new:c"}
    assert renames.match([renamed[0]], [renamed[1]], text, text) == {"a/old:c": "b/new:c"}
    assert renames.match([renamed[0]], [renamed[1]], nothing, nothing) == {}


def test_kernels_that_share_only_their_frame_are_two():
    before, after = make("a/old", "before"), make("b/new", "after")
    other = BODY.replace("exp(value) / (1 + exp(value))", "sin(value) - 4 * sqrt(abs(cos(value)) + 2)")

    def head(row):
        return other.replace("NAME", row.kernel)

    assert renames.match([before], [after], text, head) == {}
    same_file = replace(after, source_path=before.source_path)
    assert renames.match([before], [same_file], text, head) == {"a/old:c": "b/new:c"}


def test_pairs_are_joined_for_every_target():
    labels = ("fp16", "fp32")
    before, after = ([make(name, name[2:], label) for label in labels] for name in ("a/old", "b/new"))
    pairs = [
        runs.pair(f"{row.id}@{name}", row if row in before else None, row if row in after else None)
        for name in ("sm_90", "gfx942")
        for row in (*before, *after)
    ]
    joined = renames.join(pairs, text, text)
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
    assert renames.match(old, new, text, text) == {"a/old:c": "b/new:c/k#2"}
