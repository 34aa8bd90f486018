"""The ground-truth film studio: films made from a seeded edit list, with the exact truth beside them."""
