"""A run on disk: the pipeline that makes it, where its stages are executed, and its manifests."""
