"""What can go wrong: one file a fault; its fields are its configuration.

fault   what every fault has: where it acts, when it fires, how often it did
drop    a message is lost
A fault is made once for a cell, told each replication's chance, and judges every message on the
links that its place matches. Links without a fault don't know that there are any.
"""
