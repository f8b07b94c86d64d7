"""The desktop as it is deployed: what its owner may ask of it, and how it answers.

It is the relay and the engine of the experiments, with sessions that its owner adds and removes, a
history of what ran, and Graphs that stay as they were saved.

messages   what an owner says to the relay and the engine of the own desktop
"""
