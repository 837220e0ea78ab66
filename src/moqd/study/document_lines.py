"""TOML and JSON documents with the line of everything in them, which their parsers do not tell."""

import json
import re
import tomllib
from collections.abc import Callable, Iterator
from typing import Any

MOST_DEPTH = 16
MOST_DIGITS = 100
"""Of any number; Python cannot write those with thousands."""
TOO_LONG = f"a number has more than {MOST_DIGITS} digits; give a shorter one."
TOO_DEEP = "this is nested too deeply; a study has lists and tables, and tables in a table, but no more."
HINTS = {
    "Invalid value": "give text in quotes, a number, a list, true or false.",
    "Cannot overwrite a value": "give every key once.",
}
"""What to do where tomllib's message does not say."""

END = ""
ENDS = (",", "]", "}", "\n", END)
TOKENS = {
    ".json": re.compile(r'"(?:\\.|[^"\\])*"|[\[\]{},:\n]|[^\s\[\]{},:"]+'),
    ".toml": re.compile(
        r'"""(?:\\.|[^\\])*?"""(?:"{0,2})'
        r"|'''.*?'''(?:'{0,2})"
        r'|"(?:\\.|[^"\\])*"'
        r"|'[^']*'"
        r"|\#[^\n]*"
        r"|[\[\]{},=.\n]"
        r"|[^\s\[\]{},=.\#\"']+",
        re.DOTALL,
    ),
}
"""Strings, signs, ends of lines, and whatever is between them."""

Place = tuple[str | int, ...]
"""Where something is in the content: keys of tables, and numbers of elements of lists, from the outside in."""


class DocumentError(Exception):
    """Why a document cannot be read at all."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


def parsed(text: str, suffix: str) -> tuple[dict[str, Any], "Lines"]:
    """The content of a document, and the lines of what is in it; raises DocumentError where it cannot be read."""
    try:
        content = tomllib.loads(text) if suffix == ".toml" else json.loads(text)
    except json.JSONDecodeError as error:
        raise DocumentError(
            error.lineno, f"this is no JSON ({error.msg}, at column {error.colno}); correct it."
        ) from error
    except tomllib.TOMLDecodeError as error:
        raise _no_toml(text, str(error)) from error
    except RecursionError as error:
        raise DocumentError(1, TOO_DEEP) from error
    except ValueError as error:  # of numbers that are too long to be read
        found = re.search(rf"[0-9][0-9_]{{{MOST_DIGITS}}}", text)
        raise DocumentError(text.count("\n", 0, found.start() if found else 0) + 1, TOO_LONG) from error
    if not isinstance(content, dict):
        raise DocumentError(1, 'there are no keys; give an object that has some, such as {"tasks": ["hopper-2"]}.')
    return content, Lines(text, suffix)


def _no_toml(text: str, message: str) -> DocumentError:
    found = re.fullmatch(r"(.*) \(at (?:line (\d+), column (\d+)|end of document)\)", message, re.DOTALL)
    what, line, column = found.groups() if found else (message, None, None)
    where = f"at column {column}" if column else "at the end"
    hint = HINTS.get(what, "correct it.")
    number = int(line) if line else max(1, text.rstrip("\n").count("\n") + 1)
    return DocumentError(number, f"this is no TOML ({what[:1].lower()}{what[1:]}, {where}); {hint}")


class Lines:
    """The line of each key and element of a TOML or JSON document, which must be one that its parser accepts."""

    def __init__(self, text: str, suffix: str) -> None:
        self.at: dict[Place, int] = {}
        self.twice: list[tuple[int, str]] = []
        """Line and name of keys that their table already has; TOML's parser refuses these."""
        self._tokens = [*_tokens(text, TOKENS[suffix]), (END, 0)]
        self._next = 0
        self._decode: Callable[[str], Any] = _toml_string if suffix == ".toml" else json.loads
        self._elements: dict[Place, int] = {}
        """The number of the newest table of each array of tables."""
        if suffix == ".toml":
            self._document()
        else:
            self._value(())

    def of(self, place: Place) -> int:
        """The line of the innermost part of the place that has one."""
        known = (place[:depth] for depth in range(len(place), 0, -1))
        return next((self.at[part] for part in known if part in self.at), 1)

    def _document(self) -> None:
        table: Place = ()
        while self._peek() != END:
            if self._peek() == "[":
                table = self._header()
            else:
                self._pair(table)

    def _header(self) -> Place:
        """[a.b], or [[a.b]], which is one more element of a list."""
        _, line = self._take()
        several = self._peek() == "["
        if several:
            self._take()
        place = self._key(())
        self._take()
        if several:
            self._take()
            self.at.setdefault(place, line)
            self._elements[place] = number = self._elements.get(place, -1) + 1
            place = (*place, number)
        self.at[place] = line
        return place

    def _pair(self, table: Place) -> Place:
        line = self._line()
        place = self._key(table)
        self._take()  # = or :
        self.at[place] = line
        self._value(place)
        return place

    def _key(self, table: Place) -> Place:
        """a.b within the table; what is on the way is there from now on."""
        place: Place = table
        while True:
            token, line = self._take()
            place = (*place, self._decode(token) if token[0] == '"' else token.strip("'"))
            if len(place) > MOST_DEPTH:
                raise DocumentError(line, TOO_DEEP)
            if self._peek() != ".":
                return place
            self._take()
            self.at.setdefault(place, line)
            if place in self._elements:
                place = (*place, self._elements[place])

    def _value(self, place: Place) -> None:
        if len(place) > MOST_DEPTH:
            raise DocumentError(self._line(), TOO_DEEP)
        if self._peek() == "[":
            self._list(place)
        elif self._peek() == "{":
            self._table(place)
        else:
            self._scalar()

    def _scalar(self) -> None:
        while (token := self._tokens[self._next][0]) not in ENDS:
            if len(token) > MOST_DIGITS and token[0] not in "\"'":
                raise DocumentError(self._line(), TOO_LONG)
            self._next += 1

    def _list(self, place: Place) -> None:
        self._take()
        number = 0
        while self._peek() != "]":
            self.at[(*place, number)] = self._line()
            self._value((*place, number))
            number += 1
            if self._peek() == ",":
                self._take()
        self._take()

    def _table(self, place: Place) -> None:
        self._take()
        seen: set[Place] = set()
        while self._peek() != "}":
            line = self._line()
            key = self._pair(place)
            if key in seen:
                self.twice.append((line, str(key[-1])))
            seen.add(key)
            if self._peek() == ",":
                self._take()
        self._take()

    def _peek(self) -> str:
        """The next token; ends of lines matter only to values that are neither list nor table."""
        while self._tokens[self._next][0] == "\n":
            self._next += 1
        return self._tokens[self._next][0]

    def _line(self) -> int:
        self._peek()
        return self._tokens[self._next][1]

    def _take(self) -> tuple[str, int]:
        self._peek()
        self._next += 1
        return self._tokens[self._next - 1]


def _tokens(text: str, pattern: re.Pattern[str]) -> Iterator[tuple[str, int]]:
    """The tokens with their lines, without comments."""
    line = 1
    for match in pattern.finditer(text):
        token = match.group()
        if token[0] != "#":
            yield token, line
        line += token.count("\n")


def _toml_string(token: str) -> Any:
    return tomllib.loads(f"key = {token}")["key"]
