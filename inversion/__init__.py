"""Editing inversion: from a finished narrated video to its storyboard. Writes no tables and delivers nothing."""
