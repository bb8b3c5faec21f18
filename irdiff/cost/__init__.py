"""Predicts how a change moves the time of a launch, without a GPU.

`launch_time.of_launch` computes the times of a counted launch, `expected.expected_time` compares both
sides, and `changed_cases` does so for the cases of a run.
"""
