"""Exports: one module for each consumer, behind the registry in materialize.export.api."""
