"""Connections to a switch's Thrift port, under the names that BMv2's `bmpy_utils` has."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TextIO

from thriftpy2.thrift import TException

from fairlane.bmv2 import interface

__all__ = ["check_JSON_md5", "get_json_config", "thrift_connect", "thrift_connect_standard"]


def thrift_connect(thrift_ip: str, thrift_port: int, services: Iterable[tuple[str | None, Any]], out: TextIO | None = None) -> list[Any]:
    """Clients for (name on the wire, class of clients), on one connection. Ends the program when nobody answers."""
    try:
        return interface.connect(thrift_ip, thrift_port, services)
    except ConnectionError:
        (out or sys.stdout).write(
            f"Could not connect to thrift client on port {thrift_port}\nMake sure the switch is running and that you have the right port\n"
        )
        sys.exit(1)


def thrift_connect_standard(thrift_ip: str, thrift_port: int, out: TextIO | None = None) -> Any:
    """A client of the service `standard`."""
    return thrift_connect(thrift_ip, thrift_port, [("standard", interface.client("standard"))], out)[0]


def check_JSON_md5(client: Any, json_src: str, out: TextIO | None = None) -> None:
    """Warn when the file is not the program that the switch runs."""
    mine = hashlib.md5(Path(json_src).read_bytes(), usedforsecurity=False).digest()
    try:
        theirs = client.bm_get_config_md5()
    except (TException, OSError, EOFError):
        (out or sys.stdout).write("Error when requesting config md5 sum from switch\n")
        sys.exit(1)
    if mine != theirs:
        stars = "*" * 10
        (out or sys.stdout).write(
            f"{stars}\nWARNING: the JSON files loaded into the switch and the one you just provided to this CLI don't have the same md5 sum. "
            f"Are you sure they describe the same program?\n{'switch md5':<15}: {theirs.hex()}\n{'CLI input md5':<15}: {mine.hex()}\n{stars}\n"
        )


def get_json_config(standard_client: Any = None, json_path: str | None = None, out: TextIO | None = None) -> str:
    """The program's JSON: of a file, or of the switch."""
    if json_path:
        if standard_client is not None:
            check_JSON_md5(standard_client, json_path, out)
        return Path(json_path).read_text(encoding="utf-8")
    stream = out or sys.stdout
    try:
        stream.write("Obtaining JSON from switch...\n")
        text: str = standard_client.bm_get_config()
        stream.write("Done\n")
    except (TException, OSError, EOFError):
        stream.write("Error when requesting JSON config from switch\n")
        sys.exit(1)
    return text
