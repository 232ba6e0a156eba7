"""The predictor against published measurements: rows, the fit of its priors, and how far off it is."""
