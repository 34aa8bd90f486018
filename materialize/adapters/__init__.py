"""Thin adapters of the environment core to trainers. None of them imports the trainer."""
