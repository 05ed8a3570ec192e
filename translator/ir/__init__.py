"""The intermediate representation: see docs/ir.md."""
