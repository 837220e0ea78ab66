import subprocess
import sys

import pytest

import moqd
from moqd.cli.main import main


def test_lists_and_help(capsys):
    for arguments, expected in (
        (["tasks"], "rastrigin-2      2     2      10  two Rastrigin functions"),
        (["tasks", "arm-2"], "bending ↓"),
        (["algorithms"], "nsga2-small"),
        (["algorithms", "nsga2-small"], "(default: 256)"),
        ([], "moqd train"),
        (["--help"], "moqd tasks"),
        (["--version"], f"moqd {moqd.__version__}"),
    ):
        assert main(arguments) == 0
        assert expected in capsys.readouterr().out
    with pytest.raises(SystemExit) as exit_:
        main(["train", "arm-2", "--help"])
    assert exit_.value.code == 0
    printed = capsys.readouterr().out
    for flag in ("--algorithm", "--seed", "--iterations", "--num-cells", "--front-length", "--num-joints", "--out"):
        assert flag in printed


QUICK = """
import sys
from moqd.cli.main import main
assert main(sys.argv[1:]) == 0
print(*({name.partition(".")[0] for name in sys.modules} & {"jax", "brax", "matplotlib"}), file=sys.stderr)
"""


@pytest.mark.parametrize("argument", ["tasks", "algorithms", "--help", "--version"])
def test_what_needs_no_jax_does_not_wait_for_it(argument):
    done = subprocess.run([sys.executable, "-c", QUICK, argument], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["trian"], "unknown command 'trian'; did you mean 'train'"),
        (["train", "arm"], "unknown task 'arm'; did you mean 'arm-2'"),
        (["train", "arm-2", "--algorithm", "nsga3"], "unknown algorithm 'nsga3'; did you mean 'nsga2'"),
        (["train", "arm-2", "--num-cells", "0"], "num_cells is 0; give a whole number of at least 1"),
        (["train", "arm-2", "--num-cells", "4", "x"], "--num-cells has the value 'x'; give a whole number, or several"),
        (["train", "arm-2", "--num-cells", "4", "5", "6"], "a grid over 3 features, but task 'arm-2' has 2 (hand x,"),
        (["train", "arm-2", "--iterations", "-4"], "iterations is -4; give a whole number"),
        (["train", "arm-2", "--reference-point", "1"], "reference_point is (1.0,); give 2 finite numbers"),
        (["tasks", "all"], "unknown task 'all'"),
        (["tasks", "--sample", "10"], "--sample needs a task"),
        (["tasks", "arm-2", "--sample", "0"], "--sample is 0; give a whole number of at least 1"),
        (["tasks", "arm-2", "--sample", "1", "--seed", "4294967296"], "seed is 4294967296; give a whole number from 0"),
        (["algorithms", "nsga"], "unknown algorithm 'nsga'; did you mean 'nsga2'"),
        (
            ["algorithms", "mome", "nsga2"],
            "unexpected 'nsga2'; moqd algorithms takes only ALGORITHM besides its options",
        ),
        (["train"], "moqd train needs a TASK; moqd tasks lists them: moqd train hopper-2."),
        (["train", "--seed", "1"], "moqd train needs a TASK"),
        (["train", "arm-2", "--sed", "1"], "unknown option '--sed' of moqd train; did you mean '--seed'"),
        (["train", "arm-2", "--seed", "x"], "--seed is 'x'; give a whole number."),
        (["train", "arm-2", "--seed"], "--seed needs a value; give a whole number."),
        (["train", "arm-2", "--population", "9"], "'--population' is not one of moqd train here: it belongs to nsga2"),
        (["train", "hoper-2", "--episode-length", "9"], "unknown task 'hoper-2'; did you mean"),
        (["train", "arm-2", "--preset", "huge"], "--preset is 'huge'; give 'quick', 'small' or 'paper'."),
        (["train", "arm-2", "--iterations", "1", "--evaluations", "2"], "give one of the two and not the other"),
        (["train", "arm-2", "--init-from", "nowhere"], "'nowhere' is not a run: it holds no config.json"),
        (["train", "arm-2", "--log-every", "0"], "log_every is 0; give a whole number of at least 1"),
        (["train", "arm-2", "--checkpoint-minutes", "-1"], "checkpoint_minutes is -1.0; give a number that is not"),
        (["train", "arm-2", "--snapshot-every", "0"], "snapshot_every is 0; give a whole number of at least 1"),
        (["train", "arm-2", "--out", "/dev/null/x"], "out is '/dev/null/x', which cannot be made"),
        (["train", "arm-2", "--seed", "[/x]"], "--seed is '[/x]'; give a whole number."),
        (["train", "--config", "nowhere/config.json"], "'nowhere' is not a run: it holds no config.json"),
        (["train", "--config", "nowhere"], "--config is 'nowhere'; give the path of a run's config.json"),
        (["train", "--config", "x/config.json", "--preset", "small"], "--config and --preset are mutually exclusive"),
        (["train", "arm-2", "--task", "mine.py:task"], "'arm-2' and --task mine.py:task are two tasks"),
        (["explore"], "moqd explore needs a RUN"),
        (["train", "arm-2", "--algorithm", "mome", "--algorithm", "nsga3"], "unknown algorithm 'nsga3'"),
        (["resume"], "moqd resume needs a RUN"),
        (["resume", "x\0y"], "cannot be read ("),
        (["resume", "nowhere"], "'nowhere' is not a run: it holds no config.json"),
        (["resume", "/dev/null"], "'/dev/null' is not a run: it holds no config.json"),
        (["report", "nowhere"], "'nowhere' is not a run: it holds no config.json"),
        (["export", "nowhere", "--csv"], "'nowhere' is not a run: it holds no config.json"),
        (["export", "nowhere"], "moqd export needs a format; give --csv."),
        (["train", "hopper-2", "--episode-length", "0"], "episode_length is 0; give a whole number of at least 1"),
        (["train", "hopper-2", "--devices", "0"], "count is 0; give the number of devices"),
    ],
)
def test_what_the_user_can_mend_is_one_sentence(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    assert message in " ".join(capsys.readouterr().err.split())
    assert list(tmp_path.iterdir()) == []
