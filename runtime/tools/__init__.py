"""Host-side companions of kernels: `tilewright.tools`."""
