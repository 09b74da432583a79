"""The broker: one process, one writer, one truth about who holds what.

`app` puts the parts together, `loop` is the single writer around `core.step`, `api` answers the socket, `liveness` and
`attendance` see to it that the dead hold nothing and the absent wait for nothing. Decisions are made in `core` only.
"""
