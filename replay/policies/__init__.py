"""Who decides: every policy turns a role context into a role output and sees nothing else."""
