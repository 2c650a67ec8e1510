"""Training data that is larger than a disk: tar files in the layout of webdataset."""
