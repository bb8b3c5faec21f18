from dataclasses import replace

from irdiff.capture import renames
from tests.unit import runs

BODY = """def NAME(x, out, n, BLOCK):
    offsets = program_id(0) * BLOCK + arange(0, BLOCK)
    mask = offsets < n
    value = load(x + offsets, mask=mask)
    store(out + offsets, exp(value) / (1 + exp(value)), mask=mask)
"""


def make(launch, workload, kernel, label="c", source=""):
    return replace(
        launch,
        id=f"{workload}:{label}",
        workload=workload,
        kernel=kernel,
        label=label,
        source_digest=source or f"{workload}/{kernel}",
        source_path=f"{workload}.py",
    )


def text(launch):
    return BODY.replace("NAME", launch.kernel)


def nothing(launch):
    return ""


def test_a_kernel_is_matched_by_its_source_or_its_text_and_else_not_guessed(launch):
    moved = make(launch, "a/old", "k", source="s"), make(launch, "b/new", "k", source="s")
    renamed = make(launch, "a/old", "before"), make(launch, "b/new", "after")
    assert renames.match([moved[0]], [moved[1]], nothing, nothing) == {"a/old:c": "b/new:c"}
    assert renames.match([renamed[0]], [renamed[1]], text, text) == {"a/old:c": "b/new:c"}
    assert renames.match([renamed[0]], [renamed[1]], nothing, nothing) == {}


def test_kernels_that_share_only_their_frame_are_two(launch):
    before, after = make(launch, "a/old", "before"), make(launch, "b/new", "after")
    other = BODY.replace("exp(value) / (1 + exp(value))", "sin(value) - 4 * sqrt(abs(cos(value)) + 2)")

    def head(row):
        return other.replace("NAME", row.kernel)

    assert renames.match([before], [after], text, head) == {}
    same_file = replace(after, source_path=before.source_path)
    assert renames.match([before], [same_file], text, head) == {"a/old:c": "b/new:c"}


def test_each_kernel_is_matched_once_and_launches_by_label(launch):
    old = [make(launch, "a/old", "k", label) for label in ("fp16", "fp32")]
    new = [make(launch, "a/new", "k2", label) for label in ("fp32", "bf16")]
    new += [make(launch, "a/newer", "k3", "fp16")]
    found = renames.match(old, new, text, text)
    assert len(set(found.values())) == len(found)
    assert found["a/old:fp32"] == "a/new:fp32"
    assert "a/newer:fp16" not in found.values(), "one kernel is one kernel"


def test_pairs_are_joined_for_every_target(launch):
    labels = ("fp16", "fp32")
    before, after = ([make(launch, name, name[2:], label) for label in labels] for name in ("a/old", "b/new"))
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


def test_the_options_of_a_launch_tell_configs_apart(launch):
    old = [replace(make(launch, "a/old", "k", source="s"), options={"num_warps": "4"})]
    new = [
        replace(make(launch, "b/new", "k", source="s"), id=f"b/new:c/k#{n}", options={"num_warps": warps})
        for n, warps in ((1, "8"), (2, "4"))
    ]
    assert renames.match(old, new, text, text) == {"a/old:c": "b/new:c/k#2"}
