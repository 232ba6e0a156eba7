"""The page that holds predictions against measurements, and the gallery of recorded runs."""
