"""The lineage tests: were two models initialised and trained independently?"""
