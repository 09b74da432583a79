"""The description of the API is complete in itself and made from the structs that are served."""

from __future__ import annotations

import json
import re

from jupyter_gpubroker.wire.openapi import document
from jupyter_gpubroker.wire.routes import API, ROUTES


def test_every_reference_leads_somewhere() -> None:
    text = document().decode()
    schemas = json.loads(text)["components"]["schemas"]
    references = set(re.findall(r'"#/components/schemas/(\w+)"', text))
    assert references
    assert references <= schemas.keys()


def test_every_route_is_there_once_with_its_body_and_answer() -> None:
    paths = json.loads(document())["paths"]
    operations = [paths[API + route.path][route.method.lower()] for route in ROUTES]
    assert sum(map(len, paths.values())) == len(ROUTES)
    assert len({operation["operationId"] for operation in operations}) == len(ROUTES)
    for route, operation in zip(ROUTES, operations, strict=True):
        assert ("304" in operation["responses"]) == route.poll
        named = {parameter["name"] for parameter in operation["parameters"]}
        assert named >= set(route.queries)
        assert ("id" in named) == ("{id}" in route.path)


def test_it_is_the_same_each_time() -> None:
    assert document() == document()
