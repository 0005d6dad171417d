"""One solve: the run loop, its monitor, the best point, interrupts and the result."""
