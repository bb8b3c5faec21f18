"""The examples that are rendered from the recorded run are what irdiff writes today."""

from tests.programs import examples

STORIES = {f"comment-{name}.md" for name in ("changes-nothing", "changes-an-option", "breaks-the-compiler")}


def test_each_is_made_by_something_and_is_not_stale():
    made = examples.recorded()
    for path, text in made.items():
        assert examples.settled(text) == examples.settled(examples.read(path)), "stale: `make examples`"
    assert {path.name for path in examples.EXAMPLES.iterdir()} == {path.name for path in made} | STORIES | {
        "README.md"
    }


def test_times_and_digests_do_not_count_but_everything_else_does():
    text = "compared: `2026-11-22T05:30:39+00:00, in 21.6 s` with `af1a6967bfdd`, 3 of 7 changed"
    later = text.replace("21.6", "3").replace("T05:30", "T06:31").replace("af1a6967bfdd", "0123456789ab")
    assert examples.settled(text) == examples.settled(later)
    assert examples.settled(text) != examples.settled(text.replace("3 of 7", "4 of 7"))
