"""Matching a problem's terms to a solver's slots, with the oracles and exact derivations in between."""
