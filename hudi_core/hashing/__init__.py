"""Hash functions of Hudi's files: bloom filters, and the hashes that pick shards and buckets."""
