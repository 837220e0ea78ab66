"""Which of many cases the quick tests take; the others are for the long ones."""

import pytest


def only(quick, cases):
    """All `cases`, to parametrise by: those in `quick` in both kinds of tests, the others in the long ones alone."""
    assert all(case in cases for case in quick)
    values = {case: case if isinstance(case, tuple) else (case,) for case in cases}
    return [pytest.param(*values[case], marks=() if case in quick else pytest.mark.slow) for case in cases]
