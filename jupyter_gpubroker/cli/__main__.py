"""`python -m jupyter_gpubroker.cli`: the command line where its script is not on the PATH."""

from . import main

main()
