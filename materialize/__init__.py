"""Trajectories to training data: examples, splits, lake rows, rewards, exports. Opens no media and starts no process."""
