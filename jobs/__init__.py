"""The running of things: configuration, sources, the stage chain, runners, command line, reports."""
