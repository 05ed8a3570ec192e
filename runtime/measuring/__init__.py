"""`triton.testing`: clocks, comparisons, reports."""
