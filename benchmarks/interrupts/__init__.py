"""Interrupt everything everywhere, use the same GPU again, and look for what was left behind."""
