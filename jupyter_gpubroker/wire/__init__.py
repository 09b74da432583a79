"""The bodies of the REST API, versioned under `/v1`; `openapi.json` is generated from here.

APIs only grow within a version: unknown fields are refused on configuration and ignored on everything that is read.
Durations are on the wire, never points in time, except where a person reads them (RFC 3339, names end in `_at`).
"""
