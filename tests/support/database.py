"""What a database file says, read without our code where that can be."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import msgspec

from jupyter_gpubroker.core.model import Entity, State
from jupyter_gpubroker.store.codec import CODECS

Entities = dict[tuple[str, str], Entity]


def rows(path: Path, query: str) -> list[tuple[Any, ...]]:
    """What another program reads in the file, without our code."""
    connection = sqlite3.connect(path)
    found = connection.execute(query).fetchall()
    connection.close()
    return found


def kept(state: State) -> Entities:
    """Every entity of a state by table and id; shipped rows are left out."""
    new = State()
    rules = (*new.policies.values(), *new.queues.values(), *new.faults.values())
    maps = {codec.table: getattr(state, codec.table) for codec in CODECS.values()}
    maps |= {str(row.TABLE): {row.id: row} for row in (state.limits, state.modes)}
    return {
        (table, entity_id): entity
        for table, by_id in maps.items()
        for entity_id, entity in by_id.items()
        if entity not in (new.limits, new.modes, *rules)
    }


def retold(path: Path) -> Entities:
    """The entities that follow from the audit rows alone."""
    fields: dict[tuple[str, str], dict[str, Any]] = {}
    for table, entity_id, changed in rows(
        path, "SELECT entity_table, entity_id, changed FROM audit ORDER BY sequence"
    ):
        if changed is None:
            del fields[table, entity_id]
        else:
            fields.setdefault((table, entity_id), {}).update(json.loads(changed))
    types = {codec.table: entity_type for entity_type, codec in CODECS.items()}
    return {key: msgspec.convert(values, types[key[0]]) for key, values in fields.items()}
