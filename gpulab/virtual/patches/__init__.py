"""What stands behind names of torch while a virtual GPU is entered, one part a module."""
