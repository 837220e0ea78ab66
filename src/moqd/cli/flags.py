"""Flags from dataclasses by tyro, and every mistake in them as one sentence.

What the user gave is looked at here before tyro sees it, because what tyro says of a mistake is a box of several lines.
Should tyro still refuse something, then its words are made one sentence, so that nobody ever sees the box.
"""

import ast
import inspect
import itertools
import re
import textwrap
import types
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass, make_dataclass
from difflib import get_close_matches
from enum import Enum
from io import StringIO
from itertools import takewhile
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import tyro

from moqd.io.errors import InputError
from moqd.io.options import ONE_OR_SEVERAL

OWN_TASK = (
    "A task of your own is named by --task FILE.py:NAME, an algorithm by --algorithm FILE.py:NAME; with "
    "--accept-changes, also if the file has changed since a run was made."
)


def parse(
    program: str,
    description: str,
    parts: Mapping[str, Any],
    arguments: Sequence[str],
    elsewhere: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """The parts by name, with what the arguments say; their fields are flags beside each other.

    A part is a dataclass, or an instance of one whose values are the defaults. `elsewhere` says of flags that these
    parts do not have where they belong: {"--population": "the algorithms nsga2, spea2"}.
    """
    description = f"{description} {OWN_TASK}"
    if any(token in ("-h", "--help") for token in takewhile(lambda token: token != "--", arguments)):
        _ask_tyro(program, description, parts, ["--help"])
    arguments = _gathered(arguments, _check(program, _arguments_of(parts), arguments, elsewhere or {}))
    printed = StringIO()
    try:
        with redirect_stdout(printed), redirect_stderr(printed):
            parsed = _ask_tyro(program, description, parts, arguments)
    except SystemExit:
        raise InputError(f"{program} cannot use these arguments: {_unboxed(printed.getvalue())}.") from None
    kinds = {name: part if isinstance(part, type) else type(part) for name, part in parts.items()}
    try:
        return {name: kind(**_values(getattr(parsed, name))) for name, kind in kinds.items()}
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"{program} cannot use these arguments: {str(error).rstrip('.')}.") from error


def _ask_tyro(program: str, description: str, parts: Mapping[str, Any], arguments: Sequence[str]) -> Any:
    """The parts as tyro gives them: instances of what they are shown as."""
    layout: list[Any] = []
    for name, part in parts.items():
        shown = _as_shown(part if isinstance(part, type) else type(part), " ".join(description.split()))
        default = [] if isinstance(part, type) else [shown(**_values(part))]
        layout.append((name, shown, *default))
    options: Any = make_dataclass("Options", layout, frozen=True, kw_only=True)
    text = " ".join(description.split())
    return tyro.cli(options, prog=program, description=text, args=list(arguments), config=(tyro.conf.OmitArgPrefixes,))


def _as_shown(cls: type, said: str) -> type:
    """The same fields, with what is written below them as their help: tyro would keep the ends of its lines."""
    hints = get_type_hints(cls, include_extras=True)
    helps = {name: text for base in reversed(cls.__mro__) if is_dataclass(base) for name, text in _helps(base).items()}
    layout = []
    for known in fields(cls):
        metavar = "INT [INT ...]" if hints[known.name] == ONE_OR_SEVERAL else None
        help_ = tyro.conf.arg(help=helps.get(known.name, ""), metavar=metavar)
        own = field(default=known.default, default_factory=known.default_factory)
        layout.append((known.name, Annotated[hints[known.name], help_], own))
    shown = make_dataclass(cls.__name__, layout, frozen=True, kw_only=True)
    text = " ".join((cls.__doc__ or "").split())
    shown.__doc__ = "" if text == said else text
    return shown


def _helps(cls: type) -> dict[str, str]:
    """What stands below each field of a dataclass."""
    body = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0].body  # type: ignore[attr-defined]
    found = {}
    for statement, below in itertools.pairwise(body):
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            text = below.value.value if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) else ""
            found[statement.target.id] = " ".join(str(text).split())
    return found


def _values(part: Any) -> dict[str, Any]:
    return {known.name: getattr(part, known.name) for known in fields(part)}


def _unboxed(text: str) -> str:
    """Without colours, the lines of boxes, and line breaks."""
    return " ".join(re.sub(r"\x1b\[[0-9;]*m|[\u2500-\u257f]", " ", text).split()).rstrip(".")


class _Kind(NamedTuple):
    """What a value can be, in words and as a function that raises ValueError for all else."""

    one: str
    many: str
    convert: Callable[[str], Any]


KINDS = {
    int: _Kind("a whole number", "whole numbers", int),
    float: _Kind("a number", "numbers", float),
    str: _Kind("a word", "words", str),
    Path: _Kind("a path", "paths", Path),
}


@dataclass(frozen=True)
class _Argument:
    """A field, as the user sees it."""

    name: str
    """`--seed`, or `TASK` where it is positional."""
    kind: _Kind
    count: int | None
    """How many values it has; 0 for a switch, None for any number."""
    optional: bool
    """Whether None is a value."""
    required: bool
    alone: bool = False
    """Whether a single value stands for itself, and several for a tuple of them."""

    @property
    def positional(self) -> bool:
        return not self.name.startswith("-")

    @property
    def wanted(self) -> str:
        """In words, what to give."""
        if self.alone:
            return f"{self.kind.one}, or several"
        return self.kind.one if self.count == 1 else f"{self.count or ''} {self.kind.many}".strip()

    @property
    def greedy(self) -> bool:
        """Whether it takes all the values that follow, as tyro lets a pair do that may be None."""
        return self.count is None or (self.optional and self.count > 1)


def _arguments_of(parts: Mapping[str, Any]) -> list[_Argument]:
    found = []
    for part in parts.values():
        cls = part if isinstance(part, type) else type(part)
        hints = get_type_hints(cls, include_extras=True)
        found += [_argument(field, hints[field.name], part is cls) for field in fields(cls) if field.init]
    return found


def _argument(field: Field[Any], hint: Any, of_class: bool) -> _Argument:
    positional = get_origin(hint) is Annotated and tyro.conf.Positional in hint.__metadata__
    required = of_class and field.default is MISSING and field.default_factory is MISSING
    hint, optional = _without_none(hint.__origin__ if get_origin(hint) is Annotated else hint)
    alone = hint == ONE_OR_SEVERAL
    element, count = (int, None) if alone else _element(hint)
    if hint is bool and not (positional or required or optional):
        count = 0
    if positional and count is None:
        required = False
    name = field.name.upper() if positional else f"--{field.name.replace('_', '-')}"
    return _Argument(name, _kind(element), count, optional, required, alone)


def _without_none(hint: Any) -> tuple[Any, bool]:
    """(T, True) of `T | None`, (T, False) of T."""
    if hint == ONE_OR_SEVERAL or get_origin(hint) not in (Union, types.UnionType):
        return hint, False
    others = [member for member in get_args(hint) if member is not types.NoneType]
    if len(others) > 1:
        raise TypeError(f"{hint} cannot be a flag: it is several types.")
    return others[0], True


def _element(hint: Any) -> tuple[Any, int | None]:
    """What each value is, and how many there are; None for any number."""
    if get_origin(hint) not in (tuple, list, Sequence):
        return hint, 1
    elements = [element for element in get_args(hint) if element is not ...]
    if len(set(elements)) != 1:
        raise TypeError(f"{hint} cannot be a flag: its elements are of several types.")
    return elements[0], len(elements) if get_origin(hint) is tuple and ... not in get_args(hint) else None


def _kind(hint: Any) -> _Kind:
    if hint in KINDS:
        return KINDS[hint]
    if hint is bool:
        return _choice(["True", "False"])
    if get_origin(hint) is Literal:
        return _choice([str(choice) for choice in get_args(hint)])
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _choice(list(hint.__members__))
    raise TypeError(f"{hint} cannot be a flag; those that can: {', '.join(kind.__name__ for kind in KINDS)}.")


def _choice(choices: Sequence[str]) -> _Kind:
    words = " or ".join(filter(None, [", ".join(map(repr, choices[:-1])), repr(choices[-1])]))
    return _Kind(words, f"values that are {words}", choices.index)


class _Given(NamedTuple):
    """What was given to an argument, once."""

    argument: _Argument
    words: list[str]
    """With the flag, if it is one."""
    values: list[str]


def _check(
    program: str, known: Sequence[_Argument], arguments: Sequence[str], elsewhere: Mapping[str, str]
) -> list[_Given]:
    """Raises for the first mistake. Values go to flags and positional arguments as tyro gives them."""
    given = []
    options = {argument.name: argument for argument in known if not argument.positional}
    options |= {f"--no-{name[2:]}": argument for name, argument in options.items() if argument.count == 0}
    positionals = deque(argument for argument in known if argument.positional)
    missing = {argument.name: argument for argument in known if argument.required}
    tokens, ended = deque(arguments), False
    while tokens:
        token = tokens.popleft()
        values = [token]
        if token == "--" and not ended:
            ended = True
            continue
        if _is_option(token) and not ended:
            flag, equals, value = token.partition("=")
            if _spelt(flag) not in options:
                raise _unknown_option(program, flag, options, elsewhere)
            argument = options[_spelt(flag)]
            values = [value] if equals else []
        elif positionals:
            argument = positionals.popleft()
        else:
            raise _unexpected(program, token, known)
        missing.pop(argument.name, None)
        reserved = sum(positional.count or 0 for positional in positionals if positional.required)
        more = _take(tokens, argument, len(values), reserved, ended, bool(positionals))
        _check_values(argument, values + more)
        given.append(_Given(argument, [token, *more], values + more))
    if missing:
        raise _missing(program, next(iter(missing.values())))
    return given


def _gathered(arguments: Sequence[str], given: Sequence[_Given]) -> list[str]:
    """What is given several times to a flag with any number of values is all of them; tyro would take the last.

    Positional arguments go last then, and so they do where tyro would take them for values of a flag that stops at what
    is not a number.
    """
    several = [one for one in given if one.argument.greedy and not (one.argument.positional or one.argument.alone)]
    names = [one.argument.name for one in several]
    if len(set(names)) == len(names) and not any(one.argument.alone for one in given):
        return list(arguments)
    kept = [one for one in given if one not in several]
    gathered: dict[str, list[str]] = {}
    for one in several:
        before = [] if "None" in one.values else gathered.get(one.argument.name, [])
        gathered[one.argument.name] = [value for value in before if value != "None"] + one.values
    positional = [value for one in kept if one.argument.positional for value in one.values]
    others = [word for one in kept if not one.argument.positional for word in one.words]
    last = ["--", *positional] if positional else []
    return [*others, *(word for name, values in gathered.items() for word in (name, *values)), *last]


def _is_option(token: str) -> bool:
    """Whether it begins as an option does, and as no negative number."""
    return len(token) > 1 and token[0] == "-" and not re.match(r"-([\d.]|(inf|infinity|nan)\Z)", token, re.IGNORECASE)


def _is_number(token: str) -> bool:
    try:
        float(token)
    except ValueError:
        return False
    return True


def _spelt(flag: str) -> str:
    """With hyphens, as flags are listed; with underscores they mean the same."""
    return flag.replace("_", "-") if flag.startswith("--") else flag


def _take(
    tokens: deque[str], argument: _Argument, taken: int, reserved: int, ended: bool, more_expected: bool
) -> list[str]:
    """The values that follow; an argument with any number of them leaves the last ones to positional arguments.

    Where more of these are expected, one of which a single value stands for itself leaves them all but numbers.
    """
    if argument.count == 0:
        return [tokens.popleft()] if tokens and tokens[0].lower() in ("true", "false") else []
    most = len(tokens) - reserved if argument.greedy else (argument.count or 0) - taken
    values: list[str] = []
    while tokens and len(values) < most and (ended or not _is_option(tokens[0])):
        if argument.alone and more_expected and taken + len(values) > 0 and not _is_number(tokens[0]):
            break
        values.append(tokens.popleft())
    return values


def _check_values(argument: _Argument, values: Sequence[str]) -> None:
    name, count = argument.name, argument.count
    if argument.optional and values == ["None"]:
        return
    if count == 0 and values:
        raise InputError(f"{name} takes no value, but got {values[0]!r}; give {name} or --no-{name[2:]}.")
    if (count == 1 or argument.alone) and not values:
        raise InputError(f"{name} needs a value; give {argument.wanted}.")
    if count is not None and len(values) != count:
        raise InputError(f"{name} has {len(values)} value{'s' * (len(values) != 1)}; give {argument.wanted}.")
    for value in values:
        try:
            argument.kind.convert(value)
        except ValueError:
            verb = "is" if count == 1 or (argument.alone and len(values) == 1) else "has the value"
            raise InputError(f"{name} {verb} {value!r}; give {argument.wanted}.") from None


def _unknown_option(
    program: str, flag: str, options: Mapping[str, _Argument], elsewhere: Mapping[str, str]
) -> InputError:
    for name in (_spelt(flag), re.sub("^--no-", "--", _spelt(flag))):
        if name in elsewhere:
            where = " and ".join(elsewhere[name].rsplit(", ", 1))
            return InputError(f"option {flag!r} is not one of {program} here: it belongs to {where}.")
    near = get_close_matches(_spelt(flag), options, n=2, cutoff=0.65)
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"{program} --help lists those that there are."
    return InputError(f"unknown option {flag!r} of {program}; {hint}")


def _unexpected(program: str, token: str, known: Sequence[_Argument]) -> InputError:
    names = " ".join(argument.name for argument in known if argument.positional)
    only = f"only {names}" if names else "nothing"
    return InputError(f"unexpected {token!r}; {program} takes {only} beside its options.")


def _missing(program: str, argument: _Argument) -> InputError:
    if not argument.positional:
        return InputError(f"{program} needs {argument.name}; give {argument.wanted}.")
    article = "an" if argument.name[0] in "AEIO" else "a"
    return InputError(f"{program} needs {article} {argument.name}; {program} --help says what it can be.")
