"""Number formats as arithmetic on numpy arrays: grids, what they round away, and where."""
