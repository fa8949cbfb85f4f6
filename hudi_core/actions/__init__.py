"""Single actions on any Hudi table: no policy, no format."""
