"""Edges: what needs the world outside, each behind a port of the pure actors.

vm_process  a Graph's VMs in child processes, which can be killed
vm_worker   such a child
processes   a program run to its end, of which nothing is left
"""
