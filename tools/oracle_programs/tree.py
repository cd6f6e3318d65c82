"""Walks over a program's tree, and changes of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any


def nodes(tree: Any) -> Iterator[Any]:
    """All nodes, from the top down, with the types that they name."""
    if isinstance(tree, (list, tuple)):
        for one in tree:
            yield from nodes(one)
    elif dataclasses.is_dataclass(tree):
        yield tree
        for f in dataclasses.fields(tree):
            yield from nodes(getattr(tree, f.name))


def change(tree: Any, by: Callable[[Any], Any]) -> Any:
    """The tree with `by(node)` in the place of each node, from the bottom up. Lists and nodes change in place; types and matches stay."""
    if isinstance(tree, list):
        tree[:] = [change(one, by) for one in tree]
    elif isinstance(tree, tuple):
        return tuple(change(one, by) for one in tree)
    elif dataclasses.is_dataclass(tree) and not _frozen(tree):
        for f in dataclasses.fields(tree):
            setattr(tree, f.name, change(getattr(tree, f.name), by))
        return by(tree)
    return tree


def _frozen(node: Any) -> bool:
    return bool(type(node).__dataclass_params__.frozen)
