"""When the second loop's process is taken to hang."""

from reconciler.bootstrap.second_loop.process import silent_seconds_max


def test_process_whose_polls_are_far_apart_is_not_taken_to_hang() -> None:
    """It was ended every half hour, before its next poll."""
    assert silent_seconds_max(30) == 1800
    assert silent_seconds_max(3600) > 2 * 3600
