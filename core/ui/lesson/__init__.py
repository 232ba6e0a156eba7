"""A lesson's page, beat by beat, from its record; and the pages around lessons: notebook and course map."""
