"""`python -m jupyter_gpubroker.broker`: runs the user's broker; see `app`."""

from .app import main

main()
