"""Graphs: saved JavaScript programs that run agents.

fleet, admission, operations   one run: its turns, who may start, what its scripts wait for
messages, model                what an engine asks of its model; what every model does alike
synthetic, samples, scripted   models that answer by chance or from a file; schemas checks answers
seam, turns                    what an engine and a script's VM say to each other, and as text
meta                           a script's `export const meta`, read without running it
isolate, script                one JavaScript context, the VM in this process
prelude.js, prelude_*.js       what a script finds around it; parts that it may never need
"""
