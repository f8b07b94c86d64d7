"""Graphs: saved JavaScript programs that run agents.

seam        what an engine and a script's VM say to each other; pure
meta        a script's `export const meta`, read without running it; pure
turns       the VM's text made into the seam's structs; pure
prelude.js  what a script finds: agent, parallel, retry, virtual time, seeded chance
isolate     one JavaScript context, text in and text out, within its limits
script      the VM in this process
"""
