"""Pictures of pages, taken by a real browser."""
