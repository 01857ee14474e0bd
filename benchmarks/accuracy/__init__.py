"""How accurate are gpulab and other people's tools? The driver's own records judge them."""
