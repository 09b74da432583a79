"""A stand-in for NVIDIA's library: `stub.c`, and what its devices are (`world`)."""
