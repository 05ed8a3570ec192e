"""What callers pass: arrays of any library, and the specialisation that follows from all arguments."""
