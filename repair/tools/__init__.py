"""The tools of observe-reflect-repair, one module each; found as ``TOOL`` like those of replay.tools."""
