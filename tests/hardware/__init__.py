"""What only a real GPU can tell: `python -m tests.hardware`, which `make hardware` runs (`__main__`)."""
