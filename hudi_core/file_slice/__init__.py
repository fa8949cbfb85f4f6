"""A file slice as rows: base file and log files, merged."""
