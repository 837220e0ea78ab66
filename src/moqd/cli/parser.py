"""The command line, read once: split into flags with the words behind them, then matched with dataclasses.

A field of a dataclass is a flag: its type says which values it takes, and the string below it is its help. Three keys
of a field's metadata matter here: `positional` is the name of an argument that needs no flag, `repeated` is for a flag
with one value that may be given several times, and `hidden` for what cannot be given. A mistake is one sentence.
"""

import ast
import inspect
import itertools
import re
import textwrap
import types
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from rich.console import Console
from rich.text import Text

from moqd.io.errors import InputError
from moqd.io.lazy import Listed
from moqd.io.options import ONE_OR_SEVERAL

HELP = ("-h", "--help")
FLAG = re.compile(r"-(?!\Z|[\d.]|(inf|infinity|nan)\Z)", re.IGNORECASE)
"""How a flag begins, and a negative number does not."""
COLUMN = 28
"""Where the help of an option begins."""


class Kind(NamedTuple):
    """What a value can be: in words, in the help, and as a function that raises ValueError for all else."""

    one: str
    many: str
    metavar: str
    convert: Callable[[str], Any]


KINDS = {
    int: Kind("a whole number", "whole numbers", "INT", int),
    float: Kind("a number", "numbers", "NUMBER", float),
    str: Kind("a word", "words", "TEXT", str),
    Path: Kind("a path", "paths", "PATH", Path),
    bool: Kind("True or False", "True or False", "BOOL", "True".__eq__),
}


@dataclass(frozen=True)
class Argument:
    """A field, as the user sees it."""

    field: str
    name: str
    """`--seed`, or `TASK` if it is positional."""
    kind: Kind
    many: bool
    """Whether it has any number of values."""
    single: bool
    """Whether one of these stands for itself, and only several are a tuple."""
    optional: bool
    """Whether None is a value."""
    required: bool
    repeated: bool

    @property
    def positional(self) -> bool:
        return not self.name.startswith("-")

    @property
    def switch(self) -> bool:
        return self.kind is KINDS[bool]

    @property
    def wanted(self) -> str:
        """What to give, in words."""
        return f"{self.kind.one}, or several" if self.single else self.kind.many if self.many else self.kind.one

    def usage(self, default: Any) -> str:
        """What to write; a switch that is on can also be turned off."""
        if self.switch:
            return f"{self.name}, --no-{self.name[2:]}" if default else self.name
        return self.name if self.positional else f"{self.name} {self.kind.metavar}{' ...' * self.many}"

    def take(self, words: deque[str], reserved: int = 0, more_expected: bool = False) -> list[str]:
        """Its values, from the front of the words.

        Where it has any number of values, it leaves the last `reserved` words to positional arguments. While one of
        these is expected, `more_expected`, a word that is neither a value nor a number is left to that.
        """
        values: list[str] = []
        while words and (not values or self.many) and not (self.many and len(words) <= reserved):
            if values and more_expected and not any(_converts(to, words[0]) for to in (self.kind.convert, float)):
                break
            values.append(words.popleft())
        return values

    def value(self, given: Sequence[Sequence[str]]) -> Any:
        """What was given, each time; the last one counts, but lists are joined."""
        values = [self._value(words) for words in given]
        if self.repeated:
            return tuple(values)
        if not self.many or self.single:
            return values[-1]
        joined: tuple[Any, ...] | None = ()
        for value in values:
            joined = None if value is None else (*(joined or ()), *value)
        return joined

    def _value(self, words: Sequence[str]) -> Any:
        if self.optional and list(words) == ["None"]:
            return None
        one = self.single or not self.many
        if one and not words:
            raise InputError(f"{self.name} needs a value; give {self.wanted}.")
        for word in words:
            if not _converts(self.kind.convert, word):
                verb = "is" if one and len(words) == 1 else "has the value"
                raise InputError(f"{self.name} {verb} {word!r}; give {self.wanted}.")
        values = tuple(map(self.kind.convert, words))
        return values[0] if one and len(values) == 1 else values


def _converts(convert: Callable[[str], Any], word: str) -> bool:
    try:
        convert(word)
    except ValueError:
        return False
    return True


def arguments_of(*parts: Any) -> list[Argument]:
    """Of dataclasses, or instances of them."""
    return [
        _argument(known, hints[known.name])
        for cls in map(class_of, parts)
        for hints in [get_type_hints(cls)]
        for known in fields(cls)
        if not known.metadata.get("hidden")
    ]


def class_of(part: Any) -> Any:
    return part if isinstance(part, type) else type(part)


def _argument(known: Field[Any], hint: Any) -> Argument:
    single = hint == ONE_OR_SEVERAL
    union = get_args(hint) if get_origin(hint) in (Union, types.UnionType) and not single else (hint,)
    (value, *others) = [tuple[int, ...]] if single else [member for member in union if member is not types.NoneType]
    many = get_origin(value) in (tuple, list, Sequence)
    elements = {element for element in get_args(value) if element is not ...} if many else {value}
    if others or len(elements) != 1:
        raise TypeError(f"{hint} cannot be a flag: it is several types.")
    repeated = known.metadata.get("repeated", False)
    return Argument(
        field=known.name,
        name=known.metadata.get("positional") or f"--{known.name.replace('_', '-')}",
        kind=_kind(elements.pop()),
        many=many and not repeated,
        single=single,
        optional=len(union) > 1,
        required=known.default is MISSING and known.default_factory is MISSING,
        repeated=repeated,
    )


def _kind(hint: Any) -> Kind:
    if hint in KINDS:
        return KINDS[hint]
    if get_origin(hint) is not Literal:
        raise TypeError(f"{hint} cannot be a flag; those that can: {', '.join(kind.__name__ for kind in KINDS)}.")
    choices = get_args(hint)
    words = " or ".join(filter(None, [", ".join(map(repr, choices[:-1])), repr(choices[-1])]))
    return Kind(words, f"values that are {words}", "|".join(choices), lambda word: choices[choices.index(word)])


class Group(NamedTuple):
    """A flag and the words behind it, up to the next flag; some may turn out to be positional arguments."""

    flag: str
    """With hyphens, as flags are listed; empty for words without a flag."""
    written: str
    inline: bool
    """Whether the first word is behind an equals sign."""
    words: list[str]


def split(arguments: Sequence[str]) -> list[Group]:
    groups = [Group("", "", False, [])]
    rest = iter(arguments)
    for word in rest:
        if word == "--":
            groups.append(Group("", "", False, list(rest)))
        elif FLAG.match(word):
            written, equals, value = word.partition("=")
            flag = written.replace("_", "-") if written.startswith("--") else written
            groups.append(Group(flag, written, bool(equals), [value] if equals else []))
        else:
            groups[-1].words.append(word)
    return groups


def _flags(known: Mapping[str, Argument]) -> dict[str, Argument]:
    """All spellings: a switch can also be turned off."""
    switches = {f"--no-{name[2:]}": argument for name, argument in known.items() if argument.switch}
    return {name: argument for name, argument in known.items() if not argument.positional} | switches


class Line:
    """What was written after a command."""

    def __init__(self, program: str, arguments: Sequence[str]) -> None:
        self.program, self.groups = program, split(arguments)
        self.written = {group.flag for group in self.groups}
        """The flags, whatever they are."""
        self.help = not self.written.isdisjoint(HELP)
        self.given = defaultdict[str, list[list[str]]](list)
        """The words of each argument, by its name."""
        self.mistake: InputError | None = None
        self.positionals: list[Argument] = []
        self.flags: dict[str, Argument] = {}
        self.owners: dict[str, list[str]] = {}

    def word(self, flag: str) -> str | None:
        """The last word that was given to a flag with one value, before anything is matched."""
        return next((group.words[0] for group in reversed(self.groups) if group.flag == flag and group.words), None)

    def match(self, *parts: Any, others: Mapping[str, Listed] | None = None) -> "Line":
        """Gives every word to a field of the parts, which are dataclasses or instances of them.

        `others` are what may have further flags, by name. Their configs, some of which take long to import, are only
        looked at if the line has such a flag; which of them apply is told to `build`.
        """
        known = {argument.name: argument for argument in arguments_of(*parts)}
        self.positionals = [argument for argument in known.values() if argument.positional]
        self.flags = _flags(known)
        if others and not self.written <= {"", *HELP, *self.flags}:
            for owner, other in others.items():
                for option in arguments_of(other.config):
                    known.setdefault(option.name, option)
                    self.owners.setdefault(option.name, []).append(owner)
            self.flags = _flags(known)
        groups = [group for group in self.groups if group.flag not in HELP]
        expected = deque(self.positionals)
        for i, group in enumerate(groups):
            words, argument = deque(group.words), self.flags.get(group.flag)
            if group.flag and argument is None:
                near = get_close_matches(group.flag, self.flags, n=2, cutoff=0.65)
                hint = f"did you mean {' or '.join(map(repr, near))}?" if near else None
                all_of_them = f"{self.program} --help lists all options."
                self._mistaken(f"unknown option {group.written!r} of {self.program}; {hint or all_of_them}")
                continue
            if argument is not None and argument.switch:
                if words and (group.inline or words[0].lower() in ("true", "false")):
                    name, value = argument.name, words.popleft()
                    self._mistaken(f"{name} takes no value, but got {value!r}; give {name} or --no-{name[2:]}.")
                self.given[argument.name].append([str(group.flag == argument.name)])
            elif argument is not None:
                needed = sum(one.required for one in expected)
                reserved = max(0, needed - sum(map(self._spare, groups[i + 1 :])))
                self.given[argument.name].append(argument.take(words, reserved, bool(expected)))
            while words and expected:
                positional = expected.popleft()
                self.given[positional.name].append(positional.take(words))
            if words:
                names = " ".join(positional.name for positional in self.positionals)
                only = f"only {names}" if names else "nothing"
                self._mistaken(f"unexpected {words[0]!r}; {self.program} takes {only} besides its options.")
        return self

    def _spare(self, group: Group) -> int:
        """How many of its words may be positional arguments."""
        argument = self.flags.get(group.flag)
        return max(0, len(group.words) - (argument is not None and not argument.switch))

    def _mistaken(self, sentence: str) -> None:
        """Only the first mistake is told."""
        self.mistake = self.mistake or InputError(sentence)

    def values(self, part: Any) -> dict[str, Any]:
        """What was given of a part's fields."""
        found = {}
        for argument in arguments_of(part):
            with suppress(InputError) if self.help else nullcontext():
                if argument.name in self.given:
                    found[argument.field] = argument.value(self.given[argument.name])
        return found

    def build(self, out: Console, *parts: Any) -> list[Any]:
        """The parts, with what was given; or their help, where it is asked for."""
        if self.help:
            print_help(out, self.program, parts)
            raise SystemExit(0)
        if self.mistake is not None:
            raise self.mistake
        known = {argument.name for argument in arguments_of(*parts)}
        for name in self.given:
            if name not in known:
                where = " and ".join(", ".join(self.owners[name]).rsplit(", ", 1))
                raise InputError(f"option {name!r} is not one of {self.program} here: it belongs to {where}.")
        return [self._built(part) for part in parts]

    def _built(self, part: Any) -> Any:
        values = self.values(part)
        if not isinstance(part, type):
            return replace(part, **values)
        for argument in arguments_of(part):
            if argument.required and argument.field not in values:
                article = "" if not argument.positional else "an " if argument.name[0] in "AEIO" else "a "
                how = f"{self.program} --help explains it" if argument.positional else f"give {argument.wanted}"
                raise InputError(f"{self.program} needs {article}{argument.name}; {how}.")
        return part(**values)


def print_help(out: Console, program: str, parts: Sequence[Any]) -> None:
    """What the command does, its positional arguments, and the options of each part with their defaults."""
    positionals = [argument for argument in arguments_of(*parts) if argument.positional]
    names = [argument.name if argument.required else f"[{argument.name}]" for argument in positionals]
    _print(out, " ".join(["usage:", program, *names, "[OPTIONS]"]))
    _print(out, f"\n{textwrap.fill(_docstring(parts[0]), out.width)}")
    if positionals:
        _print(out, "\narguments", "bold")
        for part in parts:
            print_options(out, part, positional=True)
    for part in parts:
        if any(not argument.positional for argument in arguments_of(part)):
            _print(out, "\noptions" if part is parts[0] else f"\n{textwrap.fill(_docstring(part), out.width)}", "bold")
            print_options(out, part)


def print_options(out: Console, part: Any, positional: bool = False) -> None:
    """A part's options: what to write, what it means, and its default."""
    helps = _helps(class_of(part))
    for argument in arguments_of(part):
        if argument.positional == positional:
            default = getattr(part, argument.field, None)
            text = f"{helps.get(argument.field, '')} {'' if positional else _default(default)}".strip()
            lines = textwrap.wrap(text, max(20, out.width - COLUMN), break_on_hyphens=False) or [""]
            name = f"  {argument.usage(default)}"
            first, *others = lines if len(name) <= COLUMN - 2 else ["", *lines]
            help_text = "\n".join([first, *(" " * COLUMN + line for line in others)]).replace("\xa0", " ")
            _print(out, Text.assemble((f"{name:<{COLUMN if first else 0}}", "bold"), help_text))


def _print(out: Console, text: str | Text, style: str = "") -> None:
    out.print(Text(text, style) if isinstance(text, str) else text, soft_wrap=True)


def _docstring(part: Any) -> str:
    return " ".join((class_of(part).__doc__ or "").split())


def _default(value: Any) -> str:
    if value is None or value == ():
        return ""
    shown = ("on" if value else "off") if isinstance(value, bool) else value
    shown = " ".join(map(str, value)) if isinstance(value, tuple | list) else shown
    return f"(default: {shown})".replace(" ", "\xa0")  # in one line


def _helps(cls: type) -> dict[str, str]:
    """What stands below each field of a dataclass, there or in the class that it comes from."""
    found = {}
    for owner in filter(is_dataclass, reversed(cls.__mro__)):
        body = ast.parse(textwrap.dedent(inspect.getsource(owner))).body[0].body  # type: ignore[attr-defined]
        for pair in itertools.pairwise(body):
            match pair:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    found[name] = " ".join(text.split())
    return found
