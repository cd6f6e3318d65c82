"""TOML with the line of every key, so that an error can say file, line and key.

`tomllib` checks the text and gives the values; the scan below runs over accepted text and only records lines.
"""

from __future__ import annotations

import functools
import math
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib as tomllib
else:
    import tomli as tomllib

# The place of a value: keys of tables and indices of arrays, from the top.
KeyPath = tuple[str | int, ...]
DEEPEST = 32
"""Tables and arrays within each other, in a file or in one key with dots."""
MOST_BYTES = 50_000_000
_LONGEST_MESSAGE = 10_000
_PARSED = 8
"""Texts whose documents are kept: a command reads its file several times, and one with thousands of flows takes seconds."""


class ConfigError(ValueError):
    """A file that cannot be used. The message names file, line and key."""


def fault_of(value: Any, most_bits: int = 64) -> str | None:
    """Why nothing can use a number."""
    if isinstance(value, float) and not math.isfinite(value):
        return f"{value} is not a number that can be used: give a finite one, or leave the key out"
    if isinstance(value, int) and value.bit_length() > most_bits:
        return f"a whole number of {value.bit_length()} bits: at most {most_bits}"
    return None


@dataclass(frozen=True)
class Document:
    """A TOML file, or several laid over each other: the values, and the place (file, line from 1) of each key path."""

    name: str
    values: dict[str, Any]
    places: dict[KeyPath, tuple[str, int]]

    def place(self, path: KeyPath) -> tuple[str, int]:
        """File and line of a key, or of the nearest enclosing table; else line 1."""
        while path:
            if path in self.places:
                return self.places[path]
            path = path[:-1]
        return self.name, 1

    def at(self, path: KeyPath) -> Any:
        """The value at a path that exists."""
        value: Any = self.values
        for part in path:
            value = value[part]
        return value

    def error(self, path: KeyPath, what: str) -> ConfigError:
        name, line = self.place(path)
        key = show(path)
        text = f"{key + ': ' if key else ''}{what}"
        return ConfigError(f"{name}:{line}: {text if len(text) <= _LONGEST_MESSAGE else text[:_LONGEST_MESSAGE] + ' ...'}")

    def checked(self, most_bits: int = 64) -> Document:
        """This document; ConfigError for a value that nothing can use: a number that is not finite or has more bits, tables or arrays within
        each other beyond `DEEPEST`."""
        todo: list[tuple[KeyPath, Any]] = [((), self.values)]
        while todo:
            path, value = todo.pop()
            if (fault := fault_of(value, most_bits)) is not None:
                raise self.error(path, fault)
            if isinstance(value, dict | list):
                if len(path) >= DEEPEST:
                    raise self.error(path[:1], f"tables or arrays within each other: at most {DEEPEST}")
                items = value.items() if isinstance(value, dict) else enumerate(value)
                todo += [((*path, key), inner) for key, inner in items]
        return self

    def over(self, base: Document) -> Document:
        """This document laid over `base`: tables are merged key by key, all else (arrays too) is replaced as a whole."""
        places = dict(base.places)
        values = _merge(base.values, self.values, (), places)
        return Document(self.name, values, places | self.places)


def _merge(base: dict[str, Any], top: dict[str, Any], path: KeyPath, places: dict[KeyPath, tuple[str, int]]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in top.items():
        here = path + (key,)
        if isinstance(value, dict) and isinstance(base.get(key), dict):
            merged[key] = _merge(base[key], value, here, places)
        else:
            for stale in [p for p in places if p[: len(here)] == here]:
                del places[stale]
            merged[key] = value
    return merged


def show(path: KeyPath) -> str:
    """`("links", 0, "delay_s")` as `links[0].delay_s`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def read(path: Path) -> Document:
    """Read a TOML file; ConfigError when it cannot be read or parsed."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text: {error}") from error
    return parse(text, str(path))


@functools.lru_cache(_PARSED)
def parse(text: str, name: str) -> Document:
    """ConfigError when the text is no TOML. The same object for the same text: nobody changes a document."""
    if len(text) > MOST_BYTES:
        raise ConfigError(f"{name}: a file of {len(text)} characters: at most {MOST_BYTES}")
    for number, line in enumerate(text.split("\n"), 1):
        # A parser takes time with the square of a key's parts.
        if line.count(".") > DEEPEST and max(part.count(".") for part in re.split(r"[^\w.\"'-]+", re.sub(r"\s", "", line))) > DEEPEST:
            raise ConfigError(f"{name}:{number}: a key of more than {DEEPEST} parts")
    try:
        values = tomllib.loads(text)
        lines = _Scan(text.replace("\r\n", "\n")).lines()
    except tomllib.TOMLDecodeError as error:
        # Its message ends with "(at line 3, column 8)" or "(at end of document)".
        what = str(error).replace("at end of document", f"at the end, line {text.count(chr(10)) + 1}")
        raise ConfigError(f"{name}: {what}") from error
    except RecursionError as error:
        raise ConfigError(f"{name}: not TOML that can be read: brackets within brackets, too deep") from error
    except ValueError as error:  # a number with thousands of digits, a date that is none
        raise ConfigError(f"{name}: not TOML that can be read: {error}") from error
    return Document(name, values, {path: (name, line) for path, line in lines.items()}).checked()


class _Scan:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._line_at = (0, 1)
        self._lines: dict[KeyPath, int] = {}
        self._array_sizes: dict[KeyPath, int] = {}

    def lines(self) -> dict[KeyPath, int]:
        table: KeyPath = ()
        while self._blank(newlines=True) < len(self._text):
            if self._text.startswith("[", self._at):
                table = self._header()
            else:
                self._pair(table)
        return self._lines

    def _header(self) -> KeyPath:
        line = self._line()
        array = self._text.startswith("[[", self._at)
        self._at += 2 if array else 1
        keys = self._key()
        self._at += 2 if array else 1
        path: KeyPath = ()
        for key in keys[:-1]:
            path = self._last_element(path + (key,))
        path += (keys[-1],)
        if array:
            size = self._array_sizes.get(path, 0)
            self._array_sizes[path] = size + 1
            self._lines.setdefault(path, line)
            path += (size,)
        self._lines[path] = line
        return path

    def _last_element(self, path: KeyPath) -> KeyPath:
        """A header that goes through an array of tables means its last element."""
        size = self._array_sizes.get(path)
        return path + (size - 1,) if size else path

    def _pair(self, table: KeyPath) -> None:
        line = self._line()
        path = table
        for key in self._key():
            path += (key,)
            self._lines.setdefault(path, line)
        self._at += 1  # the equals sign
        self._value(path)

    def _key(self) -> list[str]:
        keys = []
        while True:
            self._blank()
            if self._text[self._at] in "\"'":
                keys.append(self._string())
            else:
                start = self._at
                while self._text[self._at].isalnum() or self._text[self._at] in "_-":
                    self._at += 1
                keys.append(self._text[start : self._at])
            self._blank()
            if self._text[self._at] != ".":
                return keys
            self._at += 1

    def _value(self, path: KeyPath) -> None:
        self._blank()
        first = self._text[self._at]
        if first in "\"'":
            self._string()
        elif first == "{":
            self._group("}", lambda _: self._pair(path))
        elif first == "[":
            self._group("]", lambda index: self._element(path + (index,)))
        else:
            while self._at < len(self._text) and self._text[self._at] not in ",]}#\n":
                self._at += 1

    def _element(self, path: KeyPath) -> None:
        self._lines[path] = self._line()
        self._value(path)

    def _group(self, end: str, member: Callable[[int], None]) -> None:
        self._at += 1
        index = 0
        while True:
            self._blank(newlines=True)
            if self._text[self._at] == end:
                self._at += 1
                return
            if self._text[self._at] == ",":
                self._at += 1
                continue
            member(index)
            index += 1

    def _string(self) -> str:
        """Past a string; its text as TOML reads it."""
        start, quote = self._at, self._text[self._at]
        if self._text.startswith(quote * 3, self._at):
            self._at = start + 3
            while not self._text.startswith(quote * 3, self._at):
                self._at += 2 if quote == '"' and self._text[self._at] == "\\" else 1
            self._at += 3
            # Up to two quotes may stand right before the closing three.
            while self._text.startswith(quote, self._at):
                self._at += 1
        else:
            self._at += 1
            while self._text[self._at] != quote:
                self._at += 2 if quote == '"' and self._text[self._at] == "\\" else 1
            self._at += 1
        inner = self._text[start + 1 : self._at - 1]
        if "\\" not in inner and quote not in inner and "\n" not in inner:
            return inner  # as nearly all are
        text: str = tomllib.loads("x = " + self._text[start : self._at])["x"]
        return text

    def _blank(self, newlines: bool = False) -> int:
        space = " \t\n" if newlines else " \t"
        while self._at < len(self._text):
            if self._text[self._at] in space:
                self._at += 1
            elif newlines and self._text[self._at] == "#":
                while self._at < len(self._text) and self._text[self._at] != "\n":
                    self._at += 1
            else:
                break
        return self._at

    def _line(self) -> int:
        """Counts on from the last place."""
        before, line = self._line_at
        line += self._text.count("\n", before, self._at)
        self._line_at = (self._at, line)
        return line
