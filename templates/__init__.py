"""The text of generated files, as Jinja templates."""
