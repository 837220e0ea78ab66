import jax
import numpy as np
import pytest

import moqd
from moqd.cli.main import main
from tests.plain import FLAGS


def test_a_sample_says_what_is_below_the_reference_point(capsys):
    """In both directions: the arm's objectives are minimised, and below means more than the reference point."""
    task = moqd.make_task("arm-2", reference_point=[0.4, 0.15])
    key_init, key_evaluate = jax.random.split(jax.random.key(1))
    cost = -np.asarray(task.evaluate(key_evaluate, task.init_genotype(key_init, 300)).fitness)
    over = cost >= np.array(task.reference_point)
    assert 0 < over.mean() < 1
    assert main(["tasks", "arm-2", "--sample", "300", "--seed", "1", "--reference-point", "0.4", "0.15"]) == 0
    words = capsys.readouterr().out.split()
    for i, name in enumerate(task.objective_names):
        at = len(words) - 1 - words[::-1].index(name)
        worst, reference, below = (words[at + column] for column in (1, 4, 5))
        assert worst == f"{cost[:, i].max():.4g}"
        assert reference == f"{task.reference_point[i]:g}"
        assert below == f"{over[:, i].mean():.1%}"
    assert f"{over.any(axis=1).mean():.1%} are below the reference point" in " ".join(words)


@pytest.mark.usefixtures("odd_task")
def test_names_are_never_markup(tmp_path, capsys):
    assert main(["tasks", "odd", "--sample", "8"]) == 0
    told = capsys.readouterr().out
    assert "odd  from [/here]" in told
    assert "v [m/s] ↑, w [/kg] ↓" in told
    assert len([line for line in told.splitlines() if line.startswith(("  v [m/s] ", "  w [/kg] "))]) == 2
    small = ["--ga-batch", "8", "--num-cells", "4", "--iterations", "2", *FLAGS]
    assert main(["train", "odd", *small, "--out", str(tmp_path / "run")]) == 0
    told = capsys.readouterr().out
    assert ["best", "in", "v", "[m/s]", "w", "[/kg]"] in [line.split() for line in told.splitlines()]
    assert "outside of the bounds of 'w [/kg]'" in told
