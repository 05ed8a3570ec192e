"""The render model through the templates."""
