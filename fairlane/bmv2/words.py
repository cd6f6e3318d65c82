"""Converts the arguments of a command to the bytes of a call, and back."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from typing import Any

from fairlane.bmv2 import interface
from fairlane.bmv2.program import EXACT, LPM, RANGE, TERNARY, VALID, Action, Table


class CommandError(Exception):
    """A command that cannot be carried out as it was typed."""

    about = "Error"


class MatchKeyError(CommandError):
    about = "Invalid match key"


class RuntimeDataError(CommandError):
    about = "Invalid runtime data"


def value(text: str, bits: int) -> bytes:
    """A number, or for 32, 48 and 128 bits an IPv4, Ethernet or IPv6 address, in whole bytes."""
    if bits == 32 and "." in text:
        try:
            return ipaddress.IPv4Address(text).packed
        except ValueError:
            raise CommandError("Invalid IPv4 address") from None
    if bits == 48 and ":" in text:
        try:
            address = bytes(int(part, 16) for part in text.split(":"))
        except ValueError:
            address = b""
        if len(address) != 6:
            raise CommandError("Invalid MAC address")
        return address
    if bits == 128 and ":" in text:
        try:
            return ipaddress.IPv6Address(text).packed
        except ValueError:
            raise CommandError("Invalid IPv6 address") from None
    try:
        number = int(text, 0)
    except ValueError:
        raise CommandError("Invalid input, could not cast to integer, try in hex with 0x prefix") from None
    try:
        return number.to_bytes((bits + 7) // 8, "big")
    except OverflowError:
        raise CommandError("Parameter is too large" if number > 0 else "Parameter is negative") from None


def integer(text: str, message: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise CommandError(message) from None


def boolean(text: str) -> bool:
    if text in {"true", "True", "false", "False"}:
        return text.lower() == "true"
    try:
        return bool(int(text, 0))
    except ValueError:
        raise CommandError("Invalid bool parameter") from None


def signed(text: str, bits: int) -> int:
    """Thrift has no unsigned numbers."""
    try:
        number = int(text, 0)
    except ValueError:
        raise CommandError("Invalid input, could not cast to integer, try in hex with 0x prefix") from None
    if not -(1 << bits - 1) <= number < 1 << bits:
        raise CommandError(f"Integer cannot fit within {bits} bits")
    return number - (1 << bits) if number >> (bits - 1) > 0 else number


def action_data(action: Action, words: Sequence[str]) -> list[bytes]:
    if len(words) != len(action.parameters):
        raise CommandError(f"Action {action.name} needs {len(action.parameters)} parameters")
    return [_part(word, bits, RuntimeDataError) for word, (_, bits) in zip(words, action.parameters, strict=True)]


def match_key(table: Table, words: Sequence[str]) -> list[Any]:
    """The match parameters of a table's key."""
    if len(words) != len(table.key):
        raise CommandError(f"Table {table.name} needs {len(table.key)} key fields")
    return [_match(word, kind, bits) for word, (_, kind, bits) in zip(words, table.key, strict=True)]


def _match(word: str, kind: int, bits: int) -> Any:
    types = interface.module("standard")
    if kind == EXACT:
        return types.BmMatchParam(type=kind, exact=types.BmMatchParamExact(_part(word, bits, MatchKeyError)))
    if kind == VALID:
        return types.BmMatchParam(type=kind, valid=types.BmMatchParamValid(boolean(word)))
    if kind == LPM:
        prefix, length = _two(word, "/", f"Invalid LPM value {word}, use '/' to separate prefix and length")
        try:
            number = int(length)
        except ValueError:
            raise MatchKeyError(f"Invalid LPM value {word}: the length is a number") from None
        return types.BmMatchParam(type=kind, lpm=types.BmMatchParamLPM(_part(prefix, bits, MatchKeyError), number))
    if kind == TERNARY:
        first, second = _two(word, "&&&", f"Invalid ternary value {word}, use '&&&' to separate key and mask")
        both = [_part(part, bits, MatchKeyError) for part in (first, second)]
        return types.BmMatchParam(type=kind, ternary=types.BmMatchParamTernary(*both))
    first, second = _two(word, "->", f"Invalid range value {word}, use '->' to separate range start and range end")
    both = [_part(part, bits, MatchKeyError) for part in (first, second)]
    if both[0] > both[1]:
        raise MatchKeyError(f"start is less than end in expression {word}")
    return types.BmMatchParam(type=kind, range=types.BmMatchParamRange(*both))


def _two(word: str, separator: str, otherwise: str) -> tuple[str, str]:
    parts = word.split(separator)
    if len(parts) != 2:
        raise MatchKeyError(otherwise)
    return parts[0], parts[1]


def _part(word: str, bits: int, error: type[CommandError]) -> bytes:
    try:
        return value(word, bits)
    except CommandError as reason:
        raise error(f"Error while parsing {word} - {reason}") from None


def port_map(words: Sequence[str], what: str = "port") -> str:
    """A text of zeros and ones, number 0 last."""
    numbers = set()
    for word in words:
        if not word.isdecimal():
            raise CommandError(f"'{word}' is not a valid {what} number")
        if int(word) in numbers:
            raise CommandError(f"Found duplicate {what} number '{int(word)}'")
        numbers.add(int(word))
    return "".join("1" if number in numbers else "0" for number in range(max(numbers, default=-1), -1, -1))


def colons(data: bytes) -> str:
    return data.hex(":")


def shown(param: Any) -> str:
    """A match parameter as a table_add shows it."""
    names = {EXACT: "EXACT", LPM: "LPM", TERNARY: "TERNARY", VALID: "VALID", RANGE: "RANGE"}
    if param.type == EXACT:
        text = colons(param.exact.key)
    elif param.type == LPM:
        text = f"{colons(param.lpm.key)}/{param.lpm.prefix_length}"
    elif param.type == TERNARY:
        text = f"{colons(param.ternary.key)} &&& {colons(param.ternary.mask)}"
    elif param.type == RANGE:
        text = f"{colons(param.range.start)} -> {colons(param.range.end_)}"
    else:
        text = ""
    return f"{names[param.type]}-{text}"


def dumped(param: Any) -> str:
    """A match parameter as a dump shows it."""
    if param.type == EXACT:
        return str(param.exact.key.hex())
    if param.type == LPM:
        return f"{param.lpm.key.hex()}/{param.lpm.prefix_length}"
    if param.type == TERNARY:
        return f"{param.ternary.key.hex()} &&& {param.ternary.mask.hex()}"
    if param.type == RANGE:
        return f"{param.range.start.hex()} -> {param.range.end_.hex()}"
    return "01" if param.valid.key else "00"
