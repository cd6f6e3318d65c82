"""A file of entries as commands of a packet test: a packet test itself, `sN-runtime.json` of the P4 tutorials, or commands of simple_switch_CLI.

Each command stands in the line of its file, where the file has lines, so that errors name it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from fairlane.errors import Refusal

_PLAYED = ("packet", "expect", "no_packet", "check_counter")
_MOST_PRIORITY = 1 << 30
_NODES_OF = "mc_node_create"


def script(path: Path, program: Path, include: Sequence[Path] = (), define: Sequence[str] = ()) -> str:
    """Refusal: the file cannot be read, or has commands that a packet test has not."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Refusal(f"--entries {path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if path.suffix == ".stf":
        return _setup(text)
    info = _info(program, include, define, path)
    if path.suffix == ".json":
        return "\n".join(_of_runtime(path, info))
    lines = text.splitlines()
    found = [_of_cli(line, info, f"{path}:{number}") for number, line in enumerate(lines, 1)]
    return "\n".join(found)


def _setup(text: str) -> str:
    """A packet test without its packets, line by line."""
    return "\n".join("" if line.split()[:1] and line.split()[0].lower() in _PLAYED else line for line in text.splitlines())


def _info(program: Path, include: Sequence[Path], define: Sequence[str], entries: Path) -> Any:
    from google.protobuf import text_format

    from fairlane import native
    from fairlane.controller.messages import p4i
    from fairlane.controller.p4info import P4Info

    if program.suffix == ".json":
        raise Refusal(
            f"--entries {entries}: such a file names what P4Info has, and {program} is BMv2 JSON: give the P4 program, or a packet test"
        )
    _, p4info, messages = native.compile(program, include=list(include), define=list(define))
    if p4info is None:
        raise Refusal(messages)
    return P4Info(text_format.Parse(p4info, p4i.P4Info()))


def _of_runtime(path: Path, info: Any) -> Iterator[str]:
    from fairlane.tutorials import runtime

    actions = {action.preamble.id: action for action in info.message.actions}
    tables = {table.preamble.id: table for table in info.message.tables}
    nodes = 0
    for located in runtime.updates(runtime.read(path), info):
        entity = located.update.entity
        if entity.HasField("table_entry"):
            yield _of_entry(entity.table_entry, tables, actions, path)
            continue
        engine = entity.packet_replication_engine_entry
        if engine.HasField("multicast_group_entry"):
            group = engine.multicast_group_entry
            yield f"mc_mgrp_create {group.multicast_group_id}"
            for replica in group.replicas:
                yield f"{_NODES_OF} {replica.instance} {replica.egress_port}"
                yield f"mc_node_associate {group.multicast_group_id} {nodes}"
                nodes += 1
        else:
            session = engine.clone_session_entry
            if len(session.replicas) != 1:
                raise Refusal(
                    f"--entries {path}: clone session {session.session_id} has {len(session.replicas)} replicas, a packet test one"
                )
            yield f"mirroring_add {session.session_id} {session.replicas[0].egress_port}"


def _of_entry(entry: Any, tables: Any, actions: Any, path: Path) -> str:
    table = tables[entry.table_id]
    call = entry.action.action
    action = actions[call.action_id]
    names = {param.id: param.name for param in action.params}
    arguments = ", ".join(f"{names[param.param_id]}:{_hex(param.value)}" for param in call.params)
    does = f"{action.preamble.name}({arguments})"
    if entry.is_default_action:
        return f"setdefault {table.preamble.name} {does}"
    fields = {field.id: field.name for field in table.match_fields}
    keys = " ".join(f"{fields[match.field_id]}:{_match(match, path)}" for match in entry.match)
    priority = f"{entry.priority} " if entry.priority else ""
    return f"add {table.preamble.name} {priority}{keys} {does}"


def _match(match: Any, path: Path) -> str:
    kind = match.WhichOneof("field_match_type")
    found = getattr(match, kind)
    if kind == "lpm":
        return f"{_hex(found.value)}/{found.prefix_len}"
    if kind == "ternary":
        return f"{_hex(found.value)}&&&{_hex(found.mask)}"
    if kind in ("exact", "optional"):
        return _hex(found.value)
    raise Refusal(f"--entries {path}: a match of kind {kind} has no form in a packet test")


def _hex(value: bytes) -> str:
    return f"0x{value.hex() or '0'}"


def _of_cli(line: str, info: Any, place: str) -> str:
    """A command of simple_switch_CLI: those that packet tests share stay as they are."""
    words = line.split("#")[0].split()
    if not words or words[0] not in ("table_add", "table_set_default"):
        return " ".join(words)
    from fairlane.controller.p4info import NotInProgram, find

    try:
        if len(words) < 3:
            raise NotInProgram(f"{words[0]} needs a table and an action")
        table = find(info.tables, words[1], "table")
        action = find(info.actions, words[2], "action")
        rest = words[3:]
        if words[0] == "table_set_default":
            return f"setdefault {table.preamble.name} {_call(action, rest)}"
        cut = rest.index("=>") if "=>" in rest else len(rest)
        keys, arguments = rest[:cut], rest[cut + 1 :]
        if len(keys) != len(table.match_fields):
            raise NotInProgram(f"table {table.preamble.name} has {len(table.match_fields)} fields in its key, the command {len(keys)}")
        priority = ""
        if len(arguments) == len(action.params) + 1:  # a small number wins there, a large one here
            priority = f"{_MOST_PRIORITY - int(arguments.pop(), 0)} "
        matches = " ".join(f"{field.name}:{_cli_value(key)}" for field, key in zip(table.match_fields, keys))
        return f"add {table.preamble.name} {priority}{matches} {_call(action, arguments)}"
    except (NotInProgram, ValueError) as error:
        raise Refusal(f"--entries {place}: {error}") from error


def _call(action: Any, arguments: Sequence[str]) -> str:
    if len(arguments) != len(action.params):
        raise ValueError(f"action {action.preamble.name} takes {len(action.params)} arguments, the command has {len(arguments)}")
    given = ", ".join(f"{param.name}:{_cli_value(value)}" for param, value in zip(action.params, arguments))
    return f"{action.preamble.name}({given})"


def _cli_value(text: str) -> str:
    """A number, an address, VALUE/PREFIX or VALUE&&&MASK, with numbers in place of addresses."""
    from fairlane.tutorials.runtime import number_of

    for sign in ("/", "&&&"):
        value, found, rest = text.partition(sign)
        if found:
            return f"{_cli_value(value)}{sign}{rest if sign == '/' else _cli_value(rest)}"
    number = number_of(text)
    if number is None:
        raise ValueError(f"{text!r} is no number and no address")
    return f"{number:#x}"
