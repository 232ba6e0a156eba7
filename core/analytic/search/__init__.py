"""A planner that searches: chips, counts, formats and plans for a model, ranked by what they cost."""
