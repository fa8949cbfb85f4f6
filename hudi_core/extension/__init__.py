"""Extensions of other distributions, found by name among their entry points."""
