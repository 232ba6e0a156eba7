"""The parts of the page that finds a deployment; start at page.py."""
