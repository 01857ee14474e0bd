"""Carry out an operator on the virtual GPU: plan, launch, and values when it ends."""
