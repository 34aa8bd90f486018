"""Chat models as deciders: what is asked, what came back, and what it means to the runtime."""
