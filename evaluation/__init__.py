"""How good things are: quality of a run and its film, computed from what was recorded; and films made with known truth to measure by.

Nothing here changes a run.
"""
