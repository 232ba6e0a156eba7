"""The scenario on a page: its record in the session and the link, its bar, and what a visitor brings."""
