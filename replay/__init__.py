"""From a storyboard to a trajectory: runtime, role contexts, policies, tools, templates."""
