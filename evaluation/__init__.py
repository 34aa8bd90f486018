"""How good a run was: quality of a trajectory and its film, computed from what was recorded; nothing here changes a run."""
