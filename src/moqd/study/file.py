"""Studies of the user's own, from a TOML or JSON file. All that is wrong in one is said at once, each with its key.

A file names tasks, algorithms and their options; nothing in it is imported or evaluated.
"""

import json
import math
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from functools import cache, partial
from pathlib import Path
from typing import Any, NoReturn

from moqd.algorithms import ALGORITHMS
from moqd.algorithms.algorithm import check_cells, is_batch
from moqd.core.networks import Policy, apply_policy
from moqd.core.types import Genotype, Key
from moqd.io.errors import InputError, known_name, one_line, unknown_name
from moqd.io.files import read_text
from moqd.io.options import checked_seed, is_count, overridden, restored, whole_number
from moqd.runs.config import RunConfig
from moqd.runs.presets import PRESETS
from moqd.study import plan
from moqd.study.plan import COUNTS, MOST_RUNS, REFERENCE, Study, Variant, make_study
from moqd.tasks import TASKS, Task, make_task
from moqd.tasks.policies import PolicyTask

PARSERS = {".toml": tomllib.loads, ".json": lambda text: json.loads(text, object_pairs_hook=_each_once)}
KEYS = ("name", "preset", "tasks", "algorithms", "seeds", "reference", *COUNTS, "minutes", "task", "algorithm")
NAME = re.compile(r"(?!\.)[A-Za-z0-9._-]{1,100}")
NAME_RULE = "up to 100 letters, digits, '.', '_' and '-', of which the first is no '.'"
"""So that it can be the name of a folder."""

MOST_BYTES = 2**18
MOST_OF_A_TASK = 100_000
MOST_OF_A_BATCH = 1_000_000
MOST_OF_AN_OPTION = 2**31 - 1
"""Whole numbers; larger ones would fill the memory as soon as the task or the algorithm is made."""
MOST_LISTED = 100

Options = Mapping[str, Any]
Place = tuple[str | int, ...]
"""Keys of tables and numbers of elements, from the outside in."""


def read_study(path: Path) -> Study:
    """The study that the file describes; the error lists every problem in a line of its own."""
    suffix = path.suffix.lower()
    if suffix not in PARSERS:
        raise InputError(f"{str(path)!r} is no study; give a file whose name ends in {' or '.join(PARSERS)}.")
    text = read_text(path, most=MOST_BYTES).removeprefix("\ufeff")
    try:
        content = PARSERS[suffix](text)
        reader = _Reader(content if isinstance(content, dict) else {})
        study = reader.study(path.stem)
        if study is not None:
            return study
        problems = list(reader.problems)
    except InputError as error:
        problems = [str(error)]
    except (ValueError, RecursionError) as error:  # no such format, too deep, or a number that is too long
        problems = [f"this is not valid {suffix[1:].upper()}: {error}"]
    number = len(problems)
    lines = [f"{one_line(str(path))} has {'a problem' if number == 1 else f'{number} problems'}:"]
    lines += [f"  {one_line(text)}" for text in problems[:MOST_LISTED]]
    lines += [f"  and {number - MOST_LISTED} more."] if number > MOST_LISTED else []
    raise InputError("\n".join(lines))


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A table of JSON, whose parser would take the last of several values; TOML's refuses them itself."""
    for key, times in Counter(key for key, _ in pairs).items():
        if times > 1:
            raise InputError(f"key {key!r} is given twice; give it once.")
    return dict(pairs)


class _Reader:
    """From the content of a file to a study; what is wrong is noted and left out, so that the rest is read too."""

    def __init__(self, content: dict[str, Any]) -> None:
        self._content = content
        self._preset: str | None = None
        self.problems: dict[str, None] = {}
        """Each once, in the order in which they were found."""
        self._doubtful: set[str] = set()
        """Algorithms of which an option was left out."""

    def study(self, stem: str) -> Study | None:
        """The study, named after the file where it has no name; None if there are problems."""
        content = self._content
        for key in content:
            self._try((key,), known_name, "key", key, KEYS)
        name = content.get("name", stem)
        if not isinstance(name, str) or not NAME.fullmatch(name):
            self._wrong(("name",), f"name is {name!r}; give a name of {NAME_RULE}.")
        budget = next((unit for unit in reversed(plan.BUDGETS) if unit in content), "evaluations")
        self._try((budget,), plan.check_budget, content)
        counts = {key: content[key] for key in COUNTS if key in content}
        for key, value in counts.items():
            self._try((key,), partial(whole_number, least=COUNTS[key]), key, value)
        if "preset" in content:
            self._preset = self._try(("preset",), known_name, "preset", content["preset"], PRESETS)

        tables = self._tables("task")
        seeds_of = {
            task: self._seeds(("task", task, "seeds"), table.pop("seeds"))
            for task, table in tables.items()
            if "seeds" in table
        }
        options = {
            task: self._sound("task", task, table, TASKS[task].config, partial(_try_task, task))
            for task, table in tables.items()
            if task in TASKS
        }
        variants = {label: self._variant(label, table) for label, table in self._tables("algorithm").items()}
        known = {label: Variant(label, {}) for label in ALGORITHMS} | variants
        task_names, labels = self._names("task", TASKS), self._names("algorithm", known)
        self._check_used("task", tables, task_names, TASKS)
        self._check_used("algorithm", variants, labels, known)
        seeds = self._seeds(("seeds",), content.get("seeds", []))
        sound, reference = [label for label in labels if label in known], content.get("reference")
        if "reference" in content and sound and reference not in [*labels]:  # it may be anything
            self._try(("reference",), known_name, "reference", reference, sound)

        tasks = {task: options.get(task, {}) for task in task_names if task in TASKS}
        algorithms = {label: variant for label in labels if (variant := known.get(label))}
        number = len(algorithms) * sum(len(seeds_of.get(task, seeds)) for task in tasks)
        self._try(("seeds",), plan.check_size, number)
        if number <= MOST_RUNS:
            self._check_pairs(tasks, algorithms, labels)
        if self.problems:
            return None
        others: dict[str, Any] = {"preset": self._preset, "reference": reference, **counts}
        others |= {"minutes": content.get("minutes")}
        return make_study(name, tasks=tasks, algorithms=algorithms, seeds=seeds, seeds_of=seeds_of, **others)

    def _wrong(self, place: Place, what: object) -> None:
        """With its key: of algorithm.mine.ga_batch, "ga_batch is 0" becomes "algorithm.mine.ga_batch is 0"."""
        path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)[1:]
        text, last = str(what), str(place[-1])
        said = f"{path}{text.removeprefix(last)}" if text.startswith(f"{last} is ") else f"{path}: {text}"
        self.problems[said] = None

    def _try(self, place: Place, check: Callable[..., Any], *arguments: Any) -> Any:
        """What the rule gives, or None where it is broken, which is noted."""
        try:
            return check(*arguments)
        except InputError as error:
            self._wrong(place, error)
            return None

    def _seeds(self, place: Place, given: Any) -> Sequence[int]:
        """Those that can be used, each once."""
        if is_count(given) and given <= MOST_RUNS:
            return range(given)
        if not isinstance(given, list):
            self._wrong(place, f"seeds is {given!r}; give how many, from 1 to {MOST_RUNS}, or a list.")
            return ()
        self._try(place, plan.check_some, "seeds", given)
        seeds: dict[int, None] = {}
        for i, value in enumerate(given):
            if (seed := self._try((*place, i), checked_seed, value)) is not None:
                self._try((*place, i), plan.check_new, "seed", seed, seeds)
                seeds[seed] = None
        return tuple(seeds)

    def _names(self, kind: str, known: Collection[str]) -> dict[str, Place]:
        """The names in the list of tasks or algorithms, each once, with its place; also those that are not known."""
        key = f"{kind}s"
        given = self._content.get(key, [])
        if not isinstance(given, list):
            self._wrong((key,), f"{key} is {given!r}; give a list of names.")
            return {}
        self._try((key,), plan.check_some, key, given)
        names: dict[str, Place] = {}
        for i, name in enumerate(given):
            self._try((key, i), partial(known_name, own=f"--{kind} FILE.py:NAME"), kind, name, known)
            if isinstance(name, str):
                self._try((key, i), plan.check_new, kind, name, names)
                names.setdefault(name, (key, i))
        return names

    def _tables(self, kind: str) -> dict[str, dict[str, Any]]:
        """What [task.NAME] or [algorithm.NAME] say, by the name; nothing where it is no table."""
        given = self._content.get(kind, {})
        if not isinstance(given, dict):
            self._wrong((kind,), f"{kind} is {given!r}; give a table of options for each {kind}, by its name.")
            return {}
        for name, table in given.items():
            if not isinstance(table, dict):
                self._wrong((kind, name), f"{name} is {table!r}; give a table of its options.")
        return {name: dict(table) if isinstance(table, dict) else {} for name, table in given.items()}

    def _variant(self, label: str, table: dict[str, Any]) -> Variant | None:
        """None where it is not known what it is a variant of."""
        place, base = ("algorithm", label), label
        if label in ALGORITHMS:
            if "base" in table:
                self._wrong((*place, "base"), f"{label!r} is one of moqd's algorithms and has no base; leave it out.")
        elif "base" not in table:
            self._wrong(
                place,
                f'it has no base; give the algorithm that it is a variant of, such as "{REFERENCE}", or for one of '
                "your own, add --algorithm FILE.py:NAME.",
            )
            return None
        else:
            check = partial(known_name, own="--algorithm FILE.py:NAME")
            base = self._try((*place, "base"), check, "base", table["base"], ALGORITHMS)
            if not NAME.fullmatch(label):
                self._wrong(place, f"an algorithm cannot be named so; give a name of {NAME_RULE}.")
            if base is None:
                return None
        config = ALGORITHMS[base].config
        options = {option: value for option, value in table.items() if option != "base"}
        attempt = partial(overridden, config, owner=f"algorithm {label!r}")
        return Variant(base, self._sound("algorithm", label, options, config, attempt))

    def _sound(self, kind: str, name: str, options: Options, config: Any, attempt: Callable[[Options], Any]) -> Options:
        """The options that `attempt` takes, one by one."""
        known = {option.name for option in fields(config)} | ({"reference_point"} if kind == "task" else set())

        def check(option: str, value: Any) -> bool:
            if option in KEYS and option not in known:
                raise InputError(f"{option!r} is no option of {kind} {name!r}, but a key of the study.")
            known_name("option", option, known, of=f"{kind} {name!r}")
            _check_large(kind, option, value)
            attempt({option: value})
            return True

        sound = {key: value for key, value in options.items() if self._try((kind, name, key), check, key, value)}
        if kind == "algorithm" and len(sound) < len(options):
            self._doubtful.add(name)
        return sound

    def _check_used(self, kind: str, tables: Collection[str], given: Collection[str], known: Collection[str]) -> None:
        """That options are of what the study has, unless its list seems to have the name with a mistake."""
        mistaken = [name for name in given if name not in known]
        for name in tables:
            if given and name not in given and not get_close_matches(name, mistaken):
                unknown = unknown_name(kind, name, set(given) & set(known), of="the study")
                unused = f"it is not listed in {kind}s; add it there, or remove its options."
                self._wrong((kind, name), unused if name in known else unknown)

    def _check_pairs(
        self, tasks: Iterable[str], algorithms: Mapping[str, Variant], places: Mapping[str, Place]
    ) -> None:
        """That every algorithm can be built for every task, and that no two are the same."""
        comparable = self._preset is not None or "preset" not in self._content
        for task in tasks:
            seen: dict[str, str] = {}
            for label, variant in algorithms.items():
                config = self._built(task, label, variant, places[label])
                if config is not None and label not in self._doubtful and comparable:
                    self._try(places[label], plan.check_different, label, config, seen)

    def _built(self, task: str, label: str, variant: Variant, place: Place) -> RunConfig | None:
        """The config of the algorithm on the task; None if it cannot be built.

        Then those options are to blame that are not taken after the ones before them, or the algorithm itself.
        """
        attempt = partial(_build, task, label, variant.base, self._preset)
        try:
            return attempt(variant.options)
        except InputError:
            pass
        if self._try(place, attempt, {}) is None:
            return None
        taken: dict[str, Any] = {}
        for option, value in variant.options.items():
            if self._try(("algorithm", label, option), attempt, {**taken, option: value}) is not None:
                taken[option] = value
        return None


def _check_large(kind: str, option: str, value: Any) -> None:
    """Raises for whole numbers that would fill the memory."""
    most = MOST_OF_A_BATCH if is_batch(option) else MOST_OF_AN_OPTION
    if kind == "task" and option != "reference_point":
        most = MOST_OF_A_TASK
    numbers = [entry for entry in (value if isinstance(value, list) else [value]) if isinstance(entry, int)]
    if any(abs(number) > most for number in numbers):
        raise InputError(f"{option} is {value!r}, which is too large; give whole numbers of at most {most}.")
    if option == "num_cells" and math.prod(numbers) > most:
        raise InputError(f"{option} is {value!r}, which is too many; give at most {most} cells in all.")


def _try_task(task: str, options: Options) -> None:
    point = options.get("reference_point")
    several = isinstance(point, list) and all(type(entry) in (int, float) for entry in point)
    if point is not None and not several:
        raise InputError(f"reference_point is {point!r}; give a list of numbers, one for each objective.")
    make_task(task, **options)


def _build(task: str, label: str, base: str, preset: str | None, options: Options) -> RunConfig:
    """Builds an algorithm for a task, to no end but to see that it can be; gives the config of such a run."""
    variants = {label: Variant(base, options)}
    planned = make_study(label, tasks={task: {}}, algorithms=variants, seeds=[0], preset=preset).runs[0].config
    config = restored(ALGORITHMS[base].config, planned.algorithm.options, f"algorithm {label!r}")
    if hasattr(config, "num_cells"):
        check_cells(config.num_cells, _outline(task))
    ALGORITHMS[base].build(label, config, _outline(task))
    return planned


@dataclass(frozen=True, eq=False, kw_only=True)
class _Outline(PolicyTask):
    """A task as far as an algorithm looks at it when it is built: without its robot, which takes seconds to load."""

    @property
    def policy(self) -> Policy:
        return Policy(1, 1, (), apply_policy)

    def _evaluate(self, key: Key, genotype: Genotype, noise: Any = None, *, record: bool) -> NoReturn:
        raise NotImplementedError


@cache
def _outline(name: str) -> Task:
    task = make_task(name)
    if not TASKS[name].policies:
        return task
    return _Outline(**{known.name: getattr(task, known.name) for known in fields(Task)})
