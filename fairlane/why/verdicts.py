"""How a packet ended at a switch, and the steps that decided it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fairlane.why import values

Step = dict[str, Any]
_DROP_PORT = 511
_CAUSES = {
    "multicast group": "its multicast group is unknown, or has no ports",
    "priority": "its priority is above those of the queues",
    "loop": "it was resubmitted or recirculated too often",
    "assert": "an assert or assume failed",
    "limit": "it is too long, or the program ran without end",
    "reconfigured": "it waited when another program was loaded",
}


@dataclass(frozen=True)
class Verdict:
    """what: "sent", "dropped", or "copied" of a packet that lives on in its copies. text: in words. steps: places of the steps that decided, in their order."""

    what: str
    text: str
    steps: tuple[int, ...] = ()

    def data(self) -> dict[str, Any]:
        return {"what": self.what, "text": self.text, "steps": list(self.steps)}


def verdicts(steps: list[Step]) -> list[Verdict]:
    """Of a packet and its copies, in the order in which they ended."""
    found = [_ended(steps, at) for at, step in enumerate(steps) if step["kind"] in ("sent", "drop")]
    if found:
        return found
    copied = any(step["kind"] == "switch" for step in steps)
    return [Verdict("copied", "It has no end here: its copies go on, or it waits in a queue.")] if copied or steps else []


def _ended(steps: list[Step], at: int) -> Verdict:
    step = steps[at]
    whose = "" if step["copy"] == 0 else f"Copy {step['copy']}: "
    if step["kind"] == "sent":
        decided = _decided(steps, at, _is_egress_spec)
        how = f": {_because(steps, decided)}" if decided is not None else ""
        return Verdict("sent", f"{whose}Sent out of port {step['port']}{how}.", _with_context(steps, decided))
    cause = step["cause"]
    if cause == "switch":
        queue = next((at_ for at_ in range(at - 1, -1, -1) if steps[at_]["kind"] == "queue" and _same(steps[at_], step)), None)
        ahead = "" if queue is None else f", with {steps[queue]['ahead']} packets before it"
        return Verdict("dropped", f"{whose}Dropped by the switch: {step['text']}{ahead}.", () if queue is None else (queue,))
    if cause not in ("ingress", "egress"):
        return Verdict("dropped", f"{whose}Dropped: {_CAUSES.get(cause, cause)}.")
    decided = _decided(steps, at, _is_drop)
    if decided is None:
        return Verdict("dropped", f"{whose}Dropped at the end of {cause}: no statement has given it a port.")
    return Verdict("dropped", f"{whose}Dropped at the end of {cause}: {_because(steps, decided)}.", _with_context(steps, decided))


def _same(one: Step, other: Step) -> bool:
    return bool(one["packet"] == other["packet"] and one["copy"] == other["copy"])


def _is_egress_spec(change: dict[str, Any]) -> bool:
    name: str = change["name"]
    return name.endswith((".egress_spec", ".egress_port")) and values.number(change["after"]) != _DROP_PORT


def _is_drop(change: dict[str, Any]) -> bool:
    after = values.number(change["after"])
    return (change["name"].endswith(".egress_spec") and after == _DROP_PORT) or (change["name"].endswith(".drop") and after == 1)


def _decided(steps: list[Step], end: int, wanted: Any) -> int | None:
    """The last statement before a packet's end that changed what is wanted; a copy's may be the packet's own."""
    of = steps[end]
    for at in range(end - 1, -1, -1):
        step = steps[at]
        before = step["packet"] == of["packet"] and step["copy"] <= of["copy"] and step["kind"] == "statement"
        if before and any(wanted(change) for change in step.get("changes", ())):
            return at
    return None


def _table_of(steps: list[Step], statement: int) -> int | None:
    """The table whose action a statement is part of."""
    if not steps[statement].get("in_action", True):
        return None
    for at in range(statement - 1, -1, -1):
        step = steps[at]
        if not _same(step, steps[statement]) or step["kind"] in ("statement", "action"):
            continue
        return at if step["kind"] == "table" and step.get("runs") else None
    return None


def _condition_of(steps: list[Step], statement: int) -> int | None:
    """The condition before a statement that is in no table's action, and others like it."""
    for at in range(statement - 1, -1, -1):
        step = steps[at]
        if not _same(step, steps[statement]) or (step["kind"] == "statement" and not step.get("in_action")):
            continue
        return at if step["kind"] == "condition" else None
    return None


def _with_context(steps: list[Step], decided: int | None) -> tuple[int, ...]:
    if decided is None:
        return ()
    table, condition = _table_of(steps, decided), _condition_of(steps, decided)
    return tuple(at for at in (table, condition, decided) if at is not None)


def _because(steps: list[Step], decided: int) -> str:
    source = steps[decided].get("source") or {}
    text, line = source.get("text", "a statement"), source.get("line")
    where = f"line {line}, " if line else ""
    table, condition = _table_of(steps, decided), _condition_of(steps, decided)
    because = f"{where}{text.rstrip(';')}"
    if table is not None:
        step = steps[table]
        action = step["runs"]["name"].rpartition(".")[2]
        name = step["name"].rpartition(".")[2]
        because += f" in action {action}, which table {name} ran "
        if step.get("hit"):
            hit = next((c for c in step.get("candidates", {}).get("shown", ()) if c["hit"]), None)
            because += f"for its {values.ordinal(hit['number'])} entry" if hit else "for an entry"
        elif step["key"]:
            because += "because no entry matched" if step.get("candidates", {}).get("entries", 0) else "because it has no entries"
        else:
            because += "as its default"
    elif condition is not None:
        holds = "holds" if steps[condition]["holds"] else "does not hold"
        line = (steps[condition].get("source") or {}).get("line")
        which = f"the condition in line {line}" if line else f"condition {steps[condition]['name']}"
        because += f", since {which} {holds}"
    return because
