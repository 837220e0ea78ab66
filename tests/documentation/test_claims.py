"""What is said of the paper's claims follows from the tests, and all that they are about is in the studies."""

from functools import cache

import pytest

from benchmarks.claims import (
    AHEAD,
    BEHIND,
    BETTER,
    CLAIMS,
    FEW,
    LEANS,
    LEVEL,
    MISSING,
    NO_WORSE,
    WORSE,
    Comparison,
    _seen,
    verdict,
)
from benchmarks.tables import RESULTS
from moqd.core.metrics import METRICS
from moqd.study.file import read_study

planned = cache(lambda name: read_study(RESULTS / f"{name}.toml"))


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: f"{claim.says} {claim.metrics[0]}")
def test_what_a_claim_is_about_is_in_its_study(claim):
    study = planned(claim.study)
    assert set(claim.tasks) <= set(study.tasks)
    assert set(claim.others) <= set(study.algorithms) - {study.reference}
    assert set(claim.metrics) <= set(METRICS)


@pytest.mark.parametrize(
    ("effect", "p", "smallest", "seen"),
    [
        ("1.0", "0.01", "0.01", AHEAD),
        ("0.0", "0.01", "0.01", BEHIND),
        ("0.9", "0.05", "0.01", LEVEL),
        ("1.0", "0.1", "0.1", FEW),
        ("", "", "", MISSING),
    ],
)
def test_what_a_test_shows(effect, p, smallest, seen):
    assert _seen({"effect": effect, "p_adjusted": p, "smallest_p": smallest})[0] == seen


@pytest.mark.parametrize(
    ("expected", "found", "says"),
    [
        (BETTER, [(AHEAD, 1.0), (AHEAD, 1.0)], "shown"),
        (BETTER, [(AHEAD, 1.0), (LEVEL, 0.4)], "shown for 1 of 2, else not in direction"),
        (BETTER, [(LEVEL, 0.8), (LEVEL, 0.4)], "not shown; 1 of 2 in direction"),
        (BETTER, [(LEVEL, 0.5)], "not shown; level"),
        (BETTER, [(FEW, 1.0), (MISSING, 0.0)], "too few seeds; in direction; 1 not run yet"),
        (BETTER, [(AHEAD, 1.0), (BEHIND, 0.0)], "**no**: the other way round for B"),
        (NO_WORSE, [(LEVEL, 0.2), (AHEAD, 1.0)], "not contradicted"),
        (NO_WORSE, [(FEW, 0.0)], "too few seeds to contradict it"),
        (NO_WORSE, [(AHEAD, 1.0)], "shown"),
        (NO_WORSE, [(BEHIND, 0.0)], "**no**: the other way round for A"),
        (LEANS, [(LEVEL, 0.8)], "the same here"),
        (LEANS, [(LEVEL, 0.3)], "not shown; not in direction"),
        (WORSE, [(BEHIND, 0.0)], "shown"),
        (WORSE, [(AHEAD, 1.0)], "**no**: the other way round for A"),
        (WORSE, [(LEVEL, 0.2)], "not shown; in direction"),
        (BETTER, [(MISSING, 0.0)], "not run yet"),
    ],
)
def test_what_is_said_of_a_claim(expected, found, says):
    row = {name: Comparison(CLAIMS[0], "", "", "", *one, 1.0) for name, one in zip("AB", found, strict=False)}
    assert verdict(expected, row) == says
