"""Entities and rows: one codec for every entity type, derived from its dataclass fields.

Strings, integers, booleans and enums become typed columns of the field's name; everything else (specs, offers, orders,
reasons) becomes JSON text. The tables (`tables.py`) are made from the same columns, so a field exists once.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from enum import Enum
from typing import Any, Generic, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from ..core.model import ENTITY_TYPES, Entity

Scalar = str | int | bool | None
Row = Mapping[str, Any]
E = TypeVar("E", bound=Entity)

encode_json = msgspec.json.Encoder().encode


class ColumnKind(str, Enum):
    TEXT = "text"
    INTEGER = "integer"
    BOOLEAN = "boolean"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class Column:
    """How one field is stored. `to_scalar` and `from_scalar` are None where the value is stored as it is."""

    name: str
    kind: ColumnKind
    nullable: bool
    to_scalar: Callable[[Any], Scalar] | None
    from_scalar: Callable[[Any], object] | None


class Codec(Generic[E]):
    """Turns entities of one type into rows of its table and back. The first field is the key."""

    def __init__(self, entity_type: type[E]) -> None:
        self.entity_type = entity_type
        hints = get_type_hints(entity_type)
        self.columns = tuple(
            _column(field.name, hints[field.name]) for field in fields(entity_type)
        )

    @property
    def table(self) -> str:
        table = self.entity_type.TABLE
        assert table is not None
        return table

    def to_row(self, entity: E) -> dict[str, Scalar]:
        row: dict[str, Scalar] = {}
        for column in self.columns:
            value = getattr(entity, column.name)
            plain = value is None or column.to_scalar is None
            row[column.name] = value if plain else column.to_scalar(value)  # type: ignore[misc]
        return row

    def from_row(self, row: Row) -> E:
        values: dict[str, object] = {}
        for column in self.columns:
            scalar = row[column.name]
            plain = scalar is None or column.from_scalar is None
            values[column.name] = scalar if plain else column.from_scalar(scalar)  # type: ignore[misc]
        make: Callable[..., E] = self.entity_type
        return make(**values)

    def changed_fields(self, before: E | None, after: E) -> dict[str, object]:
        """The fields of `after` that differ from `before`; all of them where there was nothing before."""
        names = [column.name for column in self.columns]
        if before is None:
            return {name: getattr(after, name) for name in names}
        return {n: getattr(after, n) for n in names if getattr(before, n) != getattr(after, n)}


def _column(name: str, hint: object) -> Column:
    plain, nullable = _without_none(hint)
    while (supertype := getattr(plain, "__supertype__", None)) is not None:  # NewType
        plain = supertype
    if isinstance(plain, type) and issubclass(plain, Enum):
        return Column(name, ColumnKind.TEXT, nullable, _enum_value, plain)
    if plain is str:
        return Column(name, ColumnKind.TEXT, nullable, None, None)
    if plain is bool:
        return Column(name, ColumnKind.BOOLEAN, nullable, None, None)
    if plain is int:
        return Column(name, ColumnKind.INTEGER, nullable, None, None)
    return Column(name, ColumnKind.JSON, nullable, json_text, msgspec.json.Decoder(plain).decode)


def _without_none(hint: object) -> tuple[Any, bool]:
    """The hint without its None, and whether it had one."""
    if get_origin(hint) not in (Union, types.UnionType):
        return hint, False
    members = [member for member in get_args(hint) if member is not type(None)]
    assert len(members) == 1, f"a column has one type, or None: {hint}"
    return members[0], True


def _enum_value(member: Enum) -> str:
    return str(member.value)


def json_text(value: object) -> str:
    return encode_json(value).decode()


CODECS: dict[type[Entity], Codec[Any]] = {t: Codec(t) for t in ENTITY_TYPES if t.TABLE is not None}
