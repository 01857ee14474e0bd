"""Memory and time that gpulab needs on a machine for many learners, or for one all day."""
