"""What gpulab costs a machine that many people use, or one person uses all day."""
