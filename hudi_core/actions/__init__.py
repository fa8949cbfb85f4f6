"""The mechanics of single actions on any Hudi table, data or metadata: no policy, no format."""
