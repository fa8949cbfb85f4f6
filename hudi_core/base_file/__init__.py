"""Base files: Parquet files with Hudi's footers, written and read back."""
