"""Table formats and observers as plugins: finding, checking and calling them."""
