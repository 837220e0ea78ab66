"""Arguments of the wrong type, as a user's own program meets them: without the type checks of the other tests."""

import subprocess
import sys

MISTAKES = """
import moqd

task = moqd.make_task("arm-2")
algorithm = moqd.make_algorithm("mome", task)
names = dict(name="t", objective_names=["a", "b"], bounds=[(0, 1)])


def say(call):
    try:
        call()
    except moqd.InputError as error:
        print(error)


say(lambda: moqd.FunctionTask(print, feature_names=["f"], feature_bounds=3, **names))
say(lambda: moqd.make_algorithm("mome", moqd.FunctionTask(print, feature_names=["f"], feature_bounds=None, **names)))
say(lambda: moqd.run(algorithm, task, iterations=1, init_from=[{"x": 1}]))
say(lambda: moqd.FunctionTask(print, reference_point="ab", **names))
say(lambda: moqd.FunctionTask(3, **names))
say(lambda: moqd.FunctionTask(print, **(names | {"bounds": [("a", "b")]})))
say(lambda: moqd.problem(print, {"x": (0, 1)}, ["a", "b"], []))
say(lambda: moqd.Real("a", 1))
say(lambda: moqd.Real(1, 2, log="yes"))
say(lambda: moqd.run(task, algorithm, iterations=1))
say(lambda: moqd.make_algorithm("mome", "arm-2"))
say(lambda: moqd.run(algorithm, task, iterations="many"))
say(lambda: moqd.make_task("hopper-2", backend="sprig"))
say(lambda: moqd.make_task("hopper-2", hidden_sizes=64))
say(lambda: moqd.make_task("hopper-2", resamples="3"))
hopper = moqd.make_task("hopper-2")
say(lambda: moqd.make_algorithm("mome-p2c", hopper, pg_preferences="onehot"))
say(lambda: moqd.make_algorithm("mome-p2c", hopper, critic_hidden_sizes=256))
say(lambda: moqd.use_devices("two"))
say(lambda: moqd.make_algorithm("mome", task, num_cells="ten"))
say(lambda: moqd.make_algorithm("mome", task, cell_selection="gains"))
say(lambda: moqd.run("mome", task, num_cells=(10, 10, 10), iterations=1))
say(lambda: moqd.pick("runs/mine"))
say(lambda: moqd.regrid("runs/mine", 9))
say(lambda: moqd.explore("runs/mine"))
say(lambda: moqd.explore(["runs/mine"]))
"""


def test_wrong_types_get_one_sentence():
    done = subprocess.run([sys.executable, "-c", MISTAKES], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "feature_bounds is 3; give a list.",
        "the feature bounds of task 't' are not known; give feature_bounds, or have them learned by moqd.run('mome', "
        "task, ...), with the algorithm by its name.",
        "init_from is [{'x': 1}]; give a run, its archive, or the folder or file of one (designs by their parameters "
        "are given as start).",
        "reference_point is 'ab'; give 2 finite numbers, one for each of a, b.",
        "function is 3; give a function of a vector of parameters.",
        "bounds[0] is ('a', 'b'); give (lowest, highest), finite, with lowest < highest, or "
        "moqd.Integer(...) or moqd.Categorical(...).",
        "objectives is ['a', 'b']; give 'max' or 'min' for each name, as a dictionary.",
        "Real('a', 1): give two finite numbers, the lower one first.",
        "log is 'yes'; give True or False.",
        "run takes an algorithm and then a task: run('mome', task, ...).",
        "task is 'arm-2'; give a task, such as make_task('arm-2').",
        "iterations is 'many'; give a whole number of at least 0.",
        "unknown backend 'sprig'; did you mean 'spring'?",
        "hidden_sizes is 64; give a list of whole numbers of at least 1.",
        "resamples is '3'; give a whole number of at least 1, or None.",
        "unknown pg_preferences 'onehot'; did you mean 'one-hot'?",
        "critic_hidden_sizes is 256; give a list of whole numbers of at least 1.",
        "count is 'two'; give the number of devices, at least 1, or None for all of them.",
        "num_cells is 'ten'; give a whole number of at least 1, or a list of them.",
        "unknown cell_selection 'gains'; did you mean 'gain'?",
        "num_cells is (10, 10, 10), a grid over 3 features, but task 'arm-2' has 2 (hand x, hand y); give one number "
        "for each feature, or a single whole number.",
        *["run is 'runs/mine'; give a run, such as load_run('runs/mine')."] * 4,
    ]
