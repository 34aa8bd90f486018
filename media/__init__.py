"""The only door to bytes of sound and picture, and the only package that starts processes."""
