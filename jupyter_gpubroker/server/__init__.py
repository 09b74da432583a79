"""The Jupyter side: makes kernels start without a GPU, watches what they do, speaks for them to the broker.

`provisioner` starts kernels, `watcher` and `tap` see what their main thread does (`activity` decides), `link` reports it and
receives orders, `checkpoint` and `restart` carry them out. Nothing here decides about leases: that is the broker's.
"""
