"""Makes `openapi.json` from the route table and the wire's structs; nothing in it is written by hand."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from .. import __version__
from .routes import API, ROUTES, Nothing, Route
from .views import Problem

_REF = "#/components/schemas/{name}"
_ID = {"type": "string", "pattern": "^[0-9a-f]{32}$"}


def document() -> bytes:
    """The description of the whole API (OpenAPI 3.1), as JSON."""
    structs = {route.view for route in ROUTES} | {route.body for route in ROUTES} | {Problem}
    structs.discard(Nothing)
    ordered = sorted(structs, key=lambda struct: struct.__name__)
    _, components = msgspec.json.schema_components(ordered, ref_template=_REF)
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        paths.setdefault(API + route.path, {})[route.method.lower()] = _operation(route)
    described = {
        "openapi": "3.1.0",
        "info": {"title": "gpubroker", "version": __version__},
        "paths": paths,
        "components": {"schemas": components},
    }
    return msgspec.json.encode(described, order="deterministic")


def _operation(route: Route[Any]) -> dict[str, Any]:
    parameters = [_parameter("path", name, _ID) for name in re.findall(r"{(\w+)}", route.path)]
    parameters += [_parameter("query", name, {"type": "string"}) for name in route.queries]
    responses: dict[str, Any] = {
        "default": _content("It was refused", Problem, "application/problem+json")
    }
    if route.view is Nothing and route.method == "DELETE":
        responses["204"] = {"description": "Done"}
    else:
        responses["200"] = _content("Done", route.view, "application/json")
    if route.poll:
        parameters += [
            _parameter("header", "If-None-Match", {"type": "string"}),
            _parameter("header", "Prefer", {"type": "string", "examples": ["wait=30"]}),
        ]
        responses["304"] = {"description": "Nothing changed"}
    operation: dict[str, Any] = {
        "summary": route.summary,
        "operationId": _operation_id(route),
        "x-right": route.right,
        "parameters": parameters,
        "responses": responses,
    }
    if route.body is not Nothing:
        operation["requestBody"] = _content("", route.body, "application/json") | {"required": True}
    elif route.media_type != "application/json":
        text = {route.media_type: {"schema": {"type": "string"}}}
        operation["requestBody"] = {"content": text, "required": True}
    return operation


def _operation_id(route: Route[Any]) -> str:
    words = re.findall(r"[a-z]+", route.path.replace("{id}", "one"))
    return "_".join([route.method.lower(), *words])


def _parameter(place: str, name: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"in": place, "name": name, "required": place == "path", "schema": schema}


def _content(description: str, struct: type[msgspec.Struct], media_type: str) -> dict[str, Any]:
    schema = {} if struct is Nothing else {"$ref": _REF.format(name=struct.__name__)}
    return {"description": description, "content": {media_type: {"schema": schema}}}
