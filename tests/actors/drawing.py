"""Every message type there is, and a strategy that draws any message of a type."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import strategies as st

from actors import messages
from actors.messages import Message

MESSAGES: list[type[Message]] = sorted(
    (
        kind
        for kind in vars(messages).values()
        if isinstance(kind, type) and issubclass(kind, Message) and kind is not Message
    ),
    key=lambda kind: kind.__name__,
)

INTEGERS = st.integers(-(2**63), 2**63 - 1)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
SCALARS = st.none() | st.booleans() | INTEGERS | NUMBERS | st.text(max_size=8)
JSON = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)


PLAIN: dict[type[msgspec.inspect.Type], st.SearchStrategy[Any]] = {
    msgspec.inspect.AnyType: JSON,
    msgspec.inspect.StrType: st.text(max_size=12),
    msgspec.inspect.FloatType: NUMBERS,
    msgspec.inspect.BoolType: st.booleans(),
    msgspec.inspect.NoneType: st.none(),
}


def values(kind: msgspec.inspect.Type) -> st.SearchStrategy[Any]:
    """A strategy for a field's type; an assertion for a type that no message has yet."""
    if type(kind) in PLAIN:
        return PLAIN[type(kind)]
    match kind:
        case msgspec.inspect.IntType(ge=least, le=most):
            return st.integers(
                -(2**63) if least is None else int(least), 2**63 - 1 if most is None else int(most)
            )
        case msgspec.inspect.DictType(value_type=msgspec.inspect.IntType() as inner):
            return st.dictionaries(st.text(max_size=8), values(inner), max_size=3)
        case msgspec.inspect.DictType():
            return st.dictionaries(st.text(max_size=8), JSON, max_size=3)
        case msgspec.inspect.LiteralType(values=choices):
            return st.sampled_from(choices)
        case msgspec.inspect.UnionType(types=types):
            return st.one_of(*map(values, types))
        case msgspec.inspect.VarTupleType(item_type=item):
            return st.lists(values(item), max_size=3).map(tuple)
        case msgspec.inspect.StructType(cls=struct):
            return drawn(struct)
    raise AssertionError(f"no strategy for {kind}: say here how one is drawn")


def drawn(kind: type[msgspec.Struct]) -> st.SearchStrategy[Any]:
    """Any message of this type, each field drawn."""
    info = msgspec.inspect.type_info(kind)
    assert isinstance(info, msgspec.inspect.StructType)
    return st.builds(kind, **{field.name: values(field.type) for field in info.fields})
