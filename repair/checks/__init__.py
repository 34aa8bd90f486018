"""Structured checks, by what they look at: plan and lengths, assets, sound, picture, delivery. Each returns findings; none decides."""
