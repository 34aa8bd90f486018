"""Artifact store, snapshots, journal, ledger and lake: the only package that fsyncs, renames and deletes."""
