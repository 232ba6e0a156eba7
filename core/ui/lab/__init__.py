"""The engine lab's page, part by part: settings, controls, the run, the comparison, the records."""
