"""What can go wrong: one file a fault; its fields are its configuration.

fault       what every fault has: when it acts, how often it fired; of links, actors and commits
byte_fault  what every fault of a byte stream has, in the proxy and between a scenario's actors
A fault is made once for a cell, told each replication's chance, and judges every message on the
links that its place matches. Links without a fault don't know that there are any.
"""
