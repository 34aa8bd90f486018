"""The production tools, one module each.

A module here offers its tool as ``TOOL``; :func:`replay.registry.discover` finds it. Nothing else needs an edit to add one.
"""
