"""A user's batch jobs: the process that starts them, as that user, when the broker grants their slots."""
