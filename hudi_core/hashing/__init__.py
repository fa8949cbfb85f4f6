"""Hash functions of Hudi's files: bloom filters, shards and buckets."""
