"""The version of tilewright, as it stands in generated files and in cache keys."""

VERSION = "0.1.0"
