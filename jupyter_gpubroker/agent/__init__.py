"""Watches the devices of one node and says whose processes are on them; see `agent` first. It decides nothing."""
