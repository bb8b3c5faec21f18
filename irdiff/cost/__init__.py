"""What a change is expected to do to the time of a launch, without a GPU.

`launch_time.of_launch` says what the schedule of a counted launch takes, `expected.expected_time` compares
both sides, and `changed_cases` does so for the cases of a run.
"""
