"""The arithmetic: one operator table, and everything else as sums and ratios over it."""
