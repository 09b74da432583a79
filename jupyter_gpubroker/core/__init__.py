"""The decisions: who gets which slot, when it goes back, and why.

`step(state, event, now)` is pure; `apply(state, changes)` makes the next state. Nothing in this package may do I/O, read a
clock, draw random numbers, log or start threads; it imports from the standard library only what cannot touch the world.
Read on in `model` (the nouns), `machine` (which arcs exist), `events` (what can happen) and `decide` (what follows).
"""
