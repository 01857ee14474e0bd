"""How long a kernel takes on the simulated GPU."""
