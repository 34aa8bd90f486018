"""Observe, reflect, repair: inspection of real bytes, diagnosis, bounded mends, faults put in on purpose, and their links."""
