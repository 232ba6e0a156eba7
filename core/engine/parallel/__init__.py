"""A model split over processes: by columns and heads (tensor), by layers (pipeline). Start at split.py."""
