"""Studies of the user's own, from a TOML or JSON file. All that is wrong in one is said at once, each with its line.

A file names tasks, algorithms and their options; nothing in it is imported or evaluated.
"""

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from functools import cache, partial
from pathlib import Path
from typing import Any, NoReturn

import jax.numpy as jnp

from moqd.algorithms import ALGORITHMS
from moqd.algorithms.algorithm import check_cells, is_batch
from moqd.core.networks import Policy, apply_policy
from moqd.core.types import Genes, Genotype, Key
from moqd.io.errors import InputError, one_line, unknown_name
from moqd.io.files import read_text
from moqd.io.options import MOST_SEED, is_count, overridden, restored
from moqd.runs.presets import PRESETS
from moqd.study.document_lines import DocumentError, Lines, Place, parsed
from moqd.study.plan import MOST_RUNS, REFERENCE, Study, Variant, make_study
from moqd.tasks import TASKS, Task, make_task

SUFFIXES = (".toml", ".json")
COUNTS = {"iterations": 0, "evaluations": 0, "log_every": 1, "snapshot_every": 1}
"""Keys of which the value is a whole number, and the least that it may be."""
KEYS = ("name", "preset", "tasks", "algorithms", "seeds", "reference", *COUNTS, "task", "algorithm")
EXAMPLES = {"task": "hopper-2", "algorithm": REFERENCE}
NAME = re.compile(r"(?!\.)[A-Za-z0-9._-]{1,100}")
NAME_RULE = "up to 100 letters, digits, '.', '_' and '-', of which the first is no '.'"
"""So that it can be the name of a folder."""

MOST_BYTES = 2**18
MOST_OF_A_TASK = 100_000
MOST_OF_A_BATCH = 1_000_000
MOST_OF_AN_OPTION = 2**31 - 1
"""Whole numbers; larger ones would fill the memory as soon as the task or the algorithm is made."""
MOST_LISTED = 100


def read_study(path: Path) -> Study:
    """The study that the file describes; the error lists every problem in a line of its own."""
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(f"{str(path)!r} is no study; give a file whose name ends in {' or '.join(SUFFIXES)}.")
    text = read_text(path, most=MOST_BYTES).removeprefix("\ufeff")
    try:
        reader = _Reader(*parsed(text, path.suffix.lower()))
    except DocumentError as error:
        raise InputError(_listed(path, [(error.line, str(error))])) from error
    study = reader.study(path.stem)
    if study is None:
        raise InputError(_listed(path, sorted(reader.problems, key=lambda problem: problem[0])))
    return study


def _listed(path: Path, problems: list[tuple[int, str]]) -> str:
    number = len(problems)
    head = f"{one_line(str(path))} has {'a problem' if number == 1 else f'{number} problems'}:"
    shown = [f"  line {line}: {one_line(text)}" for line, text in problems[:MOST_LISTED]]
    more = [f"  and {number - MOST_LISTED} more."] if number > MOST_LISTED else []
    return "\n".join([head, *shown, *more])


class _Reader:
    """From the content of a file to a study; what is wrong is noted and left out, so that the rest is read too."""

    def __init__(self, content: dict[str, Any], lines: Lines) -> None:
        self._content, self._lines = content, lines
        self.problems: dict[tuple[int, str], None] = {}
        """Line and text, each once."""
        self._doubtful: set[tuple[str, str]] = set()
        """Tasks and algorithms of which an option was left out."""

    def study(self, stem: str) -> Study | None:
        """The study, named after the file where it has no name; None if there are problems."""
        self._check_keys()
        name, preset = self._name(stem), self._preset()
        counts = {key: self._count(key, least) for key, least in COUNTS.items() if key in self._content}
        options, seeds_of, variants = self._task_options(), self._seeds_of_tasks(), self._variants()
        known = {label: Variant(label, {}) for label in ALGORITHMS} | variants
        task_names, labels = self._names("task", TASKS), self._names("algorithm", known)
        reference, seeds = self._reference(labels, known), self._seeds(("seeds",), self._content.get("seeds", []))

        tasks = {task: options.get(task, {}) for task in task_names if task in TASKS}
        algorithms = {label: variant for label in labels if (variant := known.get(label))}
        self._check_used("task", options, task_names, TASKS)
        self._check_used("algorithm", variants, labels, known)
        number = len(algorithms) * sum(len(seeds_of.get(task, seeds)) for task in tasks)
        if number > MOST_RUNS:
            self._wrong(("seeds",), f"these are {number} runs; give fewer seeds, for at most {MOST_RUNS} runs.")
        else:
            self._check_pairs(tasks, algorithms, labels, preset)
        if self.problems:
            return None
        return make_study(
            name,
            tasks=tasks,
            algorithms=algorithms,
            seeds=seeds,
            seeds_of=seeds_of,
            preset=preset,
            reference=reference,
            **counts,
        )

    def _wrong(self, place: Place, what: object) -> None:
        self.problems[self._lines.of(place), str(what)] = None

    def _check_keys(self) -> None:
        for line, key in self._lines.twice:
            self.problems[line, f"key {key!r} is given twice; give it once."] = None
        for key in self._content:
            if key not in KEYS:
                self._wrong((key,), unknown_name("key", key, KEYS))
        if "iterations" in self._content and "evaluations" in self._content:
            later = max(("iterations",), ("evaluations",), key=self._lines.of)
            self._wrong(later, "iterations and evaluations are both given; give one of the two and not the other.")

    def _name(self, stem: str) -> str:
        name = self._content.get("name", stem)
        if not isinstance(name, str) or not NAME.fullmatch(name):
            what = "name" if "name" in self._content else "there is no name, and that of the file"
            self._wrong(("name",), f"{what} is {name!r}; give a name of {NAME_RULE}.")
        return str(name)

    def _preset(self) -> str | None:
        return self._one_of(("preset",), "preset", PRESETS) if "preset" in self._content else None

    def _reference(self, labels: Collection[str], known: Collection[str]) -> str | None:
        """One of the study's labels, where these are known; one with a mistake is said there, and not proposed."""
        reference, sound = self._content.get("reference"), [label for label in labels if label in known]
        if "reference" not in self._content or not sound or (isinstance(reference, str) and reference in labels):
            return None if reference not in sound else str(reference)
        return self._one_of(("reference",), "reference", sound)

    def _one_of(self, place: Place, kind: str, known: Collection[str], *, of: str = "") -> str | None:
        """The name that stands at the place, if it is known."""
        name: Any = self._content
        for part in place:
            name = name[part]
        if isinstance(name, str) and name in known:
            return name
        if isinstance(name, str):
            self._wrong(place, unknown_name(kind, name, known, of=of))
        else:
            self._wrong(place, f"{kind} is {name!r}; give one of {', '.join(known)}.")
        return None

    def _count(self, key: str, least: int) -> Any:
        if not is_count(self._content[key], least):
            self._wrong((key,), f"{key} is {self._content[key]!r}; give a whole number of at least {least}.")
        return self._content[key]

    def _seeds_of_tasks(self) -> dict[str, Sequence[int]]:
        """Of the tasks that have others than the study."""
        tables = self._content.get("task", {})
        tables = tables if isinstance(tables, dict) else {}
        return {
            task: self._seeds(("task", task, "seeds"), table["seeds"])
            for task, table in tables.items()
            if isinstance(table, dict) and "seeds" in table
        }

    def _seeds(self, place: Place, given: Any) -> Sequence[int]:
        """Those that can be used, each once."""
        if is_count(given) and given <= MOST_RUNS:
            return range(given)
        if not isinstance(given, list):
            self._wrong(place, f"seeds is {given!r}; give how many, from 1 to {MOST_RUNS}, or a list.")
            return ()
        if not given:
            self._wrong(place, "there are no seeds; give how many, such as 5, or a list of them.")
        allowed = f"give whole numbers from 0 to {MOST_SEED}."
        seeds: dict[int, None] = {}
        for i, seed in enumerate(given):
            if not isinstance(seed, int) or isinstance(seed, bool):
                self._wrong((*place, i), f"seed {seed!r} is no whole number; {allowed}")
            elif not 0 <= seed <= MOST_SEED:
                self._wrong((*place, i), f"seed {seed} is {'negative' if seed < 0 else 'too large'}; {allowed}")
            elif seed in seeds:
                self._wrong((*place, i), _given_twice("seed", seed))
            else:
                seeds[seed] = None
        return tuple(seeds)

    def _names(self, kind: str, known: Collection[str]) -> dict[str, Place]:
        """The names in the list of tasks or algorithms, each once, with its place; also those that are not known."""
        key, example = f"{kind}s", f'"{EXAMPLES[kind]}"'
        given = self._content.get(key, [])
        if not isinstance(given, list):
            self._wrong((key,), f"{key} is {given!r}; give a list of names, such as [{example}].")
            return {}
        if not given:
            self._wrong((key,), f"there are no {key}; give at least one, such as [{example}].")
        names: dict[str, Place] = {}
        for i, name in enumerate(given):
            if not isinstance(name, str):
                self._wrong((key, i), f"{kind} {name!r} is no name; give one in quotes, such as {example}.")
            elif name in names:
                self._wrong((key, i), _given_twice(kind, name))
            else:
                names[name] = (key, i)
                if name not in known:
                    self._wrong((key, i), unknown_name(kind, name, known))
        return names

    def _tables(self, kind: str) -> dict[str, dict[str, Any]]:
        """What [task.NAME] or [algorithm.NAME] say, by the name; nothing where it is no table."""
        given = self._content.get(kind, {})
        if not isinstance(given, dict):
            self._wrong((kind,), f"{kind} is {given!r}; give a table of options for each {kind}, by its name.")
            return {}
        for name, table in given.items():
            if not isinstance(table, dict):
                self._wrong((kind, name), f"{kind} {name!r} is {table!r}; give a table of its options.")
        return {name: table if isinstance(table, dict) else {} for name, table in given.items()}

    def _task_options(self) -> dict[str, dict[str, Any]]:
        """By task, the options that it takes; none of tasks that are not known."""
        tables = {
            task: {option: value for option, value in table.items() if option != "seeds"}
            for task, table in self._tables("task").items()
        }
        known = {task: (*_fields_of(TASKS[task].config), "reference_point") for task in tables if task in TASKS}
        return {
            task: self._sound("task", task, table, known[task], partial(_try_task, task)) if task in known else {}
            for task, table in tables.items()
        }

    def _variants(self) -> dict[str, Variant | None]:
        """By label, those that have a table; None where it is not known what they are variants of."""
        return {label: self._variant(label, table) for label, table in self._tables("algorithm").items()}

    def _variant(self, label: str, table: Mapping[str, Any]) -> Variant | None:
        place, base = ("algorithm", label), label if label in ALGORITHMS else None
        if label in ALGORITHMS and "base" in table:
            self._wrong(
                (*place, "base"),
                f"{label!r} is one of moqd's algorithms and has no base; leave base out, or give the variant a name of "
                "its own.",
            )
        elif "base" in table:
            base = self._one_of((*place, "base"), "base", ALGORITHMS, of=f"algorithm {label!r}")
            if not NAME.fullmatch(label):
                self._wrong(place, f"algorithm {label!r} cannot be named so; give a name of {NAME_RULE}.")
        elif label not in ALGORITHMS:
            self._wrong(
                place,
                f'algorithm {label!r} has no base; give the algorithm that it is a variant of, such as "{REFERENCE}".',
            )
        if base is None:
            return None
        config = ALGORITHMS[base].config
        options = {option: value for option, value in table.items() if option != "base"}
        attempt = partial(overridden, config, owner=f"algorithm {label!r}")
        return Variant(base, self._sound("algorithm", label, options, _fields_of(config), attempt))

    def _sound(
        self,
        kind: str,
        name: str,
        options: Mapping[str, Any],
        known: Collection[str],
        attempt: Callable[[Mapping[str, Any]], Any],
    ) -> dict[str, Any]:
        """The options that `attempt` takes, one by one."""
        sound = {}
        for option, value in options.items():
            problem: object
            if option in known:
                problem = _too_large(kind, option, value) or _refusal(attempt, {option: value})
            elif option in KEYS:
                problem = f"{option!r} is no option of {kind} {name!r}, but a key of the study; move it to the top."
            else:
                problem = unknown_name("option", option, known, of=f"{kind} {name!r}")
            if problem:
                self._wrong((kind, name, option), problem)
                self._doubtful.add((kind, name))
            else:
                sound[option] = value
        return sound

    def _check_used(self, kind: str, tables: Collection[str], given: Collection[str], known: Collection[str]) -> None:
        """That options are of what the study has, unless its list seems to have the name with a mistake."""
        sound, mistaken = ([name for name in given if (name in known) == right] for right in (True, False))
        for name in tables:
            if given and name not in given and not get_close_matches(name, mistaken):
                near = get_close_matches(name, sound, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"add it to {kind}s, or leave its options out."
                self._wrong((kind, name), f"the study has no {kind} {name!r}, of which options are given; {hint}")

    def _check_pairs(
        self,
        tasks: Collection[str],
        algorithms: Mapping[str, Variant],
        places: Mapping[str, Place],
        preset: str | None,
    ) -> None:
        """That every algorithm can be built for every task, and that no two are the same."""
        comparable = preset is not None or "preset" not in self._content
        for task in tasks:
            labels: dict[Any, str] = {}
            for label, variant in algorithms.items():
                settings = self._built(task, label, variant, places[label], preset)
                if settings is None or ("algorithm", label) in self._doubtful or not comparable:
                    continue
                first = labels.setdefault(settings, label)
                if first != label:
                    self._wrong(
                        places[label],
                        f"algorithm {label!r} has the same settings as {first!r}, which would be the same runs; leave "
                        "one of the two out.",
                    )

    def _built(self, task: str, label: str, variant: Variant, place: Place, preset: str | None) -> Any:
        """The settings of the algorithm on the task; None if it cannot be built.

        Then those options are to blame that are not taken after the ones before them, or the algorithm itself.
        """
        attempt = partial(_build, task, label, variant.base, preset)
        try:
            return attempt(variant.options)
        except InputError:
            pass
        if problem := _refusal(attempt, {}):
            self._wrong(place, problem)
            return None
        taken: dict[str, Any] = {}
        for option, value in variant.options.items():
            if problem := _refusal(attempt, {**taken, option: value}):
                self._wrong(("algorithm", label, option), problem)
            else:
                taken[option] = value
        return None


def _given_twice(what: str, value: object) -> str:
    return f"{what} {value!r} is given twice, which would be the same runs; give it once."


def _fields_of(config: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(config))


def _refusal(attempt: Callable[[Mapping[str, Any]], Any], options: Mapping[str, Any]) -> str:
    """Why these options are not taken; empty if they are."""
    try:
        attempt(options)
    except InputError as error:
        return str(error)
    return ""


def _too_large(kind: str, option: str, value: Any) -> str:
    """What to say of whole numbers that would fill the memory."""
    most = MOST_OF_A_BATCH if is_batch(option) else MOST_OF_AN_OPTION
    if kind == "task" and option != "reference_point":
        most = MOST_OF_A_TASK
    numbers = [entry for entry in (value if isinstance(value, list) else [value]) if isinstance(entry, int)]
    if not all(abs(number) <= most for number in numbers):
        return f"{option} is {value!r}, which is too large; give whole numbers of at most {most}."
    if option == "num_cells" and math.prod(numbers) > most:
        return f"num_cells is {value!r}, which is too many; give at most {most} cells in all."
    return ""


def _try_task(task: str, options: Mapping[str, Any]) -> None:
    point = options.get("reference_point")
    several = isinstance(point, list) and all(type(entry) in (int, float) for entry in point)
    if point is not None and not several:
        raise InputError(f"reference_point is {point!r}; give a list of numbers, one for each objective.")
    make_task(task, **options)


def _build(task: str, label: str, base: str, preset: str | None, options: Mapping[str, Any]) -> Any:
    """Builds an algorithm for a task, to no end but to see that it can be; gives its settings, to be compared."""
    variant = Variant(base, options)
    study = make_study(label, tasks={task: {}}, algorithms={label: variant}, seeds=[0], preset=preset)
    settings = {name: value for name, value in study.runs[0].settings["algorithm"].items() if name != "name"}
    config = restored(ALGORITHMS[base].config, settings, f"algorithm {label!r}")
    if hasattr(config, "num_cells"):
        check_cells(config.num_cells, _outline(task))
    ALGORITHMS[base].build(label, config, _outline(task))
    return base, config


@dataclass(frozen=True, eq=False, kw_only=True)
class _Outline(Task):
    """A task as far as an algorithm looks at it when it is built: without its robot, which takes seconds to load."""

    policies: bool
    made_of: Genes | None

    @property
    def genes(self) -> Genes | None:
        return self.made_of

    @property
    def policy(self) -> Policy | None:
        return Policy(1, 1, (), apply_policy) if self.policies else None

    def init_genotype(self, key: Key, num_genotypes: int) -> Genotype:
        return jnp.zeros((num_genotypes, 1 if self.genes is None else len(self.genes.num_values)))

    def evaluate(self, key: Key, genotype: Genotype) -> NoReturn:
        raise NotImplementedError


@cache
def _outline(name: str) -> _Outline:
    task = make_task(name)
    return _Outline(
        name=name,
        objective_names=task.objective_names,
        feature_names=task.feature_names,
        feature_bounds=task.feature_bounds,
        policies=TASKS[name].policies,
        made_of=task.genes,
    )
