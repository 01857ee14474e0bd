"""Check the laws of the virtual GPU over random programs."""
