from moqd.algorithms import ALGORITHMS
from moqd.plots.style import algorithm_styles, display_name, task_title, tasks_in_order
from moqd.study.plan import BASELINES, GROUPS, PAPER_TASKS, Study

ALL = tuple(ALGORITHMS)


def study_of(*algorithms, tasks=("arm-2",), reference=None):
    return Study("made", tasks, algorithms, (0,), reference or algorithms[0], ())


def looks(study):
    return {label: (style.colour, style.line) for label, style in algorithm_styles(study).items()}


def test_names_are_those_of_the_paper():
    paper = ["MOME-P2C", "MOME-PGX", "MOME", "PGA-ME", "NSGA-II", "NSGA-II-small", "SPEA2", "SPEA2-small"]
    assert [display_name(label) for label in BASELINES] == paper
    ablations = ["Keep-Pref", "One-Hot", "No-Actor", "No-GA", "No-Crowding"]
    assert [display_name(label) for label in GROUPS["ablations"][2:]] == ablations
    assert display_name("pga-me-128") == "PGA-ME-128"
    assert display_name("my own $") == "my own $"
    titles = ["Ant-2", "Ant-3", "HalfCheetah-2", "Hopper-2", "Hopper-3", "Walker-2"]
    assert [task_title(task) for task in PAPER_TASKS] == titles
    assert task_title("arm-2") == "arm-2"


def test_every_algorithm_has_a_name_and_looks_like_no_other():
    assert all(display_name(label) != label for label in ALL)
    assert len(set(looks(study_of(*ALL)).values())) == len(ALL)
    marks = {(style.marker, style.line == "-") for style in algorithm_styles(study_of(*ALL)).values()}
    assert len(marks) == len(ALL)  # without colour, the fronts can be told apart too


def test_in_the_figures_of_the_paper_the_colours_of_an_algorithm_are_its_own_or_its_familys():
    assert len({colour for colour, _ in looks(study_of(*GROUPS["ablations"])).values()}) == 7
    colours = {label: colour for label, (colour, _) in looks(study_of(*BASELINES)).items()}
    for small in ("nsga2", "spea2"):
        assert colours.pop(f"{small}-small") == colours[small]
    assert len(set(colours.values())) == len(colours) == 6


def test_an_algorithm_looks_the_same_in_all_studies():
    for group in (*GROUPS.values(), ("mome", "mine"), ("mine", "other", "mome-p2c-no-ga")):
        whole, part = looks(study_of(*ALL)), looks(study_of(*group))
        assert all(part[label] == whole[label] for label in group if label in whole)


def test_others_take_what_is_left():
    """All of seven colours and four lines are used before one comes twice."""
    own = [f"variant-{i}" for i in range(28 - len(ALL))]
    both = looks(study_of(*ALL, *own))
    assert len(set(both.values())) == 28
    assert len(looks(study_of(*ALL, *own, "one more"))) == 29
    first = looks(study_of("a", "b", "c", reference="b"))
    assert first["b"] == looks(study_of("mome-p2c"))["mome-p2c"]
    assert len({colour for colour, _ in first.values()}) == 3


def test_the_reference_stands_out():
    styles = algorithm_styles(study_of("mome", "mome-p2c", "mine", reference="mome-p2c"))
    assert [style.stands_out for style in styles.values()] == [False, True, False]
    width = {label: style.of_line["linewidth"] for label, style in styles.items()}
    order = {label: style.of_line["zorder"] for label, style in styles.items()}
    assert width["mome-p2c"] > width["mome"] == width["mine"]
    assert order["mome-p2c"] > order["mome"] == order["mine"]


def test_the_tasks_of_the_paper_come_first_in_its_order():
    study = study_of("mome", tasks=("walker-2", "b", "ant-3", "a", "ant-2"))
    assert tasks_in_order(study) == ["ant-2", "ant-3", "walker-2", "b", "a"]
