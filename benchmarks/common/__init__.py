"""What several benchmarks share: the command line, folders, environment, referee and tables."""
