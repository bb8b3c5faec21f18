from irdiff.capture import launch_texts
from irdiff.store import Store
from tests.unit import runs

CASE = "matmul/tma:fp16@sm_90"


def pair(store, base, head, **options):
    def side(text, num_stages):
        launched = runs.kept(store, {"launch": text})["launch"]
        resolved = {"num_warps": "4", "num_stages": num_stages}
        return runs.launch(CASE, launched=launched, options=resolved)

    return runs.pair(CASE, side(base, "2"), side(head, options.get("num_stages", "2")))


def texts(store, found):
    return [store.get(side.launched.digest).decode() for side in (found.base, found.head)]


def test_a_default_written_out_is_no_other_launch_and_an_option_of_no_compiler_stays(tmp_path):
    store = Store(tmp_path)
    typed = "call 1\n  grid: [4, 1, 1]\n  option num_warps: 4\n  option warmup: True\n"
    base, head = texts(store, launch_texts.resolved(pair(store, "call 1\n  grid: [4, 1, 1]\n", typed), store))
    assert base == "call 1\n  grid: [4, 1, 1]\n"
    assert head == "call 1\n  grid: [4, 1, 1]\n  option warmup: True\n"


def test_what_is_typed_and_resolved_to_another_value_stays(tmp_path):
    store = Store(tmp_path)
    typed = "call 1\n  option num_stages: 3\n  option num_warps: 4\n"
    found = launch_texts.resolved(pair(store, "call 1\n", typed, num_stages="3"), store)
    assert texts(store, found) == ["call 1\n", "call 1\n  option num_stages: 3\n"]
