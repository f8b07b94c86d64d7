"""Graphs: saved JavaScript programs that run agents.

fleet, admission, operations    one run: its turns, who may start, what its scripts wait for
agents, calls, permissions      its agents, their tool calls, and which of them they may make
approvals, trail, resume, muted what waits for the owner; how a run goes on after a restart
messages, model, schemas        what an engine asks of its model; what every model does alike
synthetic, samples, scripted, tools   models, tools and owners of experiments: chance, or a file
seam, turns, meta               what an engine and a script's VM say to each other, and as text
isolate, script                 one JavaScript context, the VM in this process
prelude.js, prelude_*.js        what a script finds around it; parts that it may never need
"""
