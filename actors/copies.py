"""Copies of an actor's attributes, from which it can go on as it was: what a checkpoint holds.

Values that never change (numbers, texts, frozen structs of such) are shared, and whatever is pinned
stays itself: the context, the tables, the actor whose methods its tables of handlers name. All else
is copied as deep as it goes, with its shape: two names for one list are two names for one copy.

What has hidden state can't be copied: a generator, a socket, a function that remembers a list. That
is told, since a copy that shares such state would change behind its owner's back.
"""

from __future__ import annotations

import sys
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from copy import copy as shallow
from enum import Enum
from functools import cache, partial
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    NoneType,
    UnionType,
)
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

_VALUES = (
    int, float, complex, str, bytes, bool, NoneType, type, range, Enum, CodeType, ModuleType,
    type(...), type(NotImplemented), property,
)  # fmt: skip
_EXACT = frozenset({int, float, str, bytes, bool, NoneType})


class UncopyableError(Exception):
    """A value has state that can't be copied; the message is a noun phrase: `a generator`."""


class Copier:
    """Copies values; objects of `pinned_types`, and the `pinned` ones, stay what they are."""

    def __init__(self, pinned_types: tuple[type, ...], pinned: Iterable[object]) -> None:
        self._types = pinned_types
        self._pinned = list(pinned)  # kept alive, so that no other object takes an id of theirs

    def copy(self, value: Any) -> Any:
        """Return a copy of a value and of all that it holds; UncopyableError if there is none."""
        memo: dict[int, Any] = {id(one): one for one in self._pinned}
        try:
            return _Copying(self._types, memo).copy(value)
        except UncopyableError:
            raise
        except RecursionError:
            raise UncopyableError("something too deep") from None
        except Exception as error:  # a user's class may raise anything when it is copied
            raise UncopyableError(f"something that can't be copied: {error}") from error


class _Copying:
    """One copy under way: what was copied already, by its identity."""

    def __init__(self, types: tuple[type, ...], memo: dict[int, Any]) -> None:
        self._values = (*types, *_VALUES)
        self._memo = memo
        self._alive: list[Any] = []  # what would else be gone while its id is still in the memo

    def copy(self, value: Any) -> Any:
        kind = type(value)
        if kind in _EXACT:
            return value
        found = self._memo.get(id(value))
        if found is not None:
            return found
        if isinstance(value, self._values):
            return value
        how = _HOW.get(kind)
        if how is not None:
            return how(self, value)
        if isinstance(value, msgspec.Struct):
            frozen = value.__struct_config__.frozen
            return self._frozen_struct(value) if frozen else self._struct(value)
        return self._object(value)

    def remember(self, value: Any, copied: Any) -> Any:
        """Note a copy; its original must live as long as its id is looked up."""
        self._memo[id(value)] = copied
        self._alive.append(value)
        return copied

    # Containers

    def _list(self, value: list[Any]) -> list[Any]:
        new: list[Any] = self.remember(value, [])
        new.extend(map(self.copy, value))
        return new

    def _dict(self, value: dict[Any, Any]) -> dict[Any, Any]:
        new: dict[Any, Any] = self.remember(value, {})
        for key, one in value.items():
            new[self.copy(key)] = self.copy(one)
        return new

    def _tuple(self, value: tuple[Any, ...]) -> tuple[Any, ...]:
        new = tuple(map(self.copy, value))
        if all(map(_is, value, new)):
            return value
        # A tuple that holds itself by way of a list was copied on the way.
        found: tuple[Any, ...] | None = self._memo.get(id(value))
        return found if found is not None else self.remember(value, new)

    def _set(self, value: set[Any]) -> set[Any]:
        return self.remember(value, set(map(self.copy, value)))  # type: ignore[no-any-return]  # it is what was given

    def _frozenset(self, value: frozenset[Any]) -> frozenset[Any]:
        return self.remember(value, frozenset(map(self.copy, value)))  # type: ignore[no-any-return]  # likewise

    def _deque(self, value: deque[Any]) -> deque[Any]:
        new: deque[Any] = self.remember(value, deque(maxlen=value.maxlen))
        new.extend(map(self.copy, value))
        return new

    def _struct(self, value: msgspec.Struct) -> msgspec.Struct:
        new: msgspec.Struct = self.remember(value, shallow(value))
        for name in value.__struct_fields__:
            setattr(new, name, self.copy(getattr(value, name)))
        return new

    def _frozen_struct(self, value: msgspec.Struct) -> msgspec.Struct:
        """Share a frozen struct, unless a field of it that may hold more has something to copy."""
        changed = {}
        for name in doubtful_fields(type(value)):
            old = getattr(value, name)
            new = self.copy(old)
            if new is not old:
                changed[name] = new
        if not changed:
            return value
        return self.remember(value, msgspec.structs.replace(value, **changed))  # type: ignore[no-any-return]  # it is what was given

    # Functions

    def _function(self, value: FunctionType) -> FunctionType:
        for cell in value.__closure__ or ():
            try:
                held = cell.cell_contents
            except ValueError:  # it is not set yet
                continue
            if held is not value and self.copy(held) is not held:
                raise UncopyableError(f"a function that remembers a {type(held).__name__}")
        return value

    def _method(self, value: MethodType) -> MethodType:
        owner = self.copy(value.__self__)
        return value if owner is value.__self__ else MethodType(value.__func__, owner)

    def _bound(self, value: Any) -> Any:
        owner = getattr(value, "__self__", None)
        if owner is None or isinstance(owner, ModuleType):
            return value
        new = self.copy(owner)
        return value if new is owner else getattr(new, value.__name__)

    def _partial(self, value: partial[Any]) -> partial[Any]:
        function, given = self.copy(value.func), self.copy(value.args)
        return partial(function, *given, **self.copy(value.keywords))

    # All else, as pickle takes it apart

    def _object(self, value: Any) -> Any:
        parts = _taken_apart(value)
        if isinstance(parts, str):
            return value  # a name in a module
        self._alive.append(parts)
        make, given, state, items, pairs = (*parts, None, None, None)[:5]
        new = self.remember(value, make(*self.copy(given)))
        if state is not None:
            self._set_state(new, self.copy(state))
        for one in items or ():
            new.append(self.copy(one))
        for key, one in pairs or ():
            new[self.copy(key)] = self.copy(one)
        return new

    def _set_state(self, new: Any, state: Any) -> None:
        if hasattr(new, "__setstate__"):
            new.__setstate__(state)
            return
        slots: Mapping[str, Any] = {}
        if isinstance(state, tuple) and len(state) == 2:
            state, slots = state
        if state:
            new.__dict__.update(state)
        for name, one in (slots or {}).items():
            setattr(new, name, one)


def _is(one: Any, other: Any) -> bool:
    return one is other


def _taken_apart(value: Any) -> Any:
    kind = type(value)
    name = f"a {kind.__name__}"
    if kind.__module__ == "itertools":
        if sys.version_info >= (3, 14):  # they can't be taken apart any more
            raise UncopyableError(name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # which announces just that
            return value.__reduce_ex__(4)
    try:
        return value.__reduce_ex__(4)
    except TypeError:
        raise UncopyableError(name) from None


_HOW: dict[type, Callable[[Any, Any], Any]] = {
    list: _Copying._list,  # noqa: SLF001  the table of the class above
    dict: _Copying._dict,  # noqa: SLF001  likewise
    tuple: _Copying._tuple,  # noqa: SLF001  likewise
    set: _Copying._set,  # noqa: SLF001  likewise
    frozenset: _Copying._frozenset,  # noqa: SLF001  likewise
    deque: _Copying._deque,  # noqa: SLF001  likewise
    FunctionType: _Copying._function,  # noqa: SLF001  likewise
    MethodType: _Copying._method,  # noqa: SLF001  likewise
    BuiltinFunctionType: _Copying._bound,  # noqa: SLF001  likewise
    MethodWrapperType: _Copying._bound,  # noqa: SLF001  likewise
    partial: _Copying._partial,  # noqa: SLF001  likewise
}


@cache
def doubtful_fields(kind: type[msgspec.Struct]) -> tuple[str, ...]:
    """Return the fields of a frozen struct that may hold something that changes."""
    try:
        hints = get_type_hints(kind)
    except Exception:  # noqa: BLE001  hints that can't be read here leave every field in doubt
        return kind.__struct_fields__
    return tuple(name for name in kind.__struct_fields__ if not _is_value(hints.get(name, Any)))


def _is_value(hint: Any) -> bool:
    """Whether what a hint allows never changes."""
    origin = get_origin(hint)
    if origin is Literal:
        return True
    if origin is Annotated:
        return _is_value(get_args(hint)[0])
    if origin in (Union, UnionType, tuple, frozenset):
        return all(one is ... or _is_value(one) for one in get_args(hint))
    if not isinstance(hint, type) or origin is not None:
        return False
    if issubclass(hint, msgspec.Struct):
        return hint.__struct_config__.frozen and not doubtful_fields(hint)
    return issubclass(hint, _VALUES)


# An object's attributes, in its dictionary and in its slots


def attributes_of(owner: object) -> dict[str, Any]:
    """Return an object's own attributes, in the order in which they were first set."""
    found = dict(getattr(owner, "__dict__", {}))
    for name in _slots(type(owner)):
        if hasattr(owner, name):
            found[name] = getattr(owner, name)
    return found


def put_attributes(owner: object, attributes: Mapping[str, Any]) -> None:
    """Let an object have these attributes, and no others."""
    for name in attributes_of(owner):
        delattr(owner, name)
    for name, value in attributes.items():
        setattr(owner, name, value)


def _slots(kind: type) -> list[str]:
    """Return the names of a class's slots, its bases' first."""
    found: dict[str, None] = {}
    for base in reversed(kind.__mro__):
        names = vars(base).get("__slots__", ())
        for name in (names,) if isinstance(names, str) else names:
            if name not in ("__dict__", "__weakref__"):
                mangled = name.startswith("__") and not name.endswith("__")
                found[f"_{base.__name__.lstrip('_')}{name}" if mangled else name] = None
    return list(found)
