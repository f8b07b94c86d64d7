"""What happened: structured logs.

record  what a log is made of: the closed list of kinds, and the contract of a recorder
keep    a replication's records, kept in a list; write puts sections into files, with a digest
rotate  the log of a process that stays, in bounded files; slim leaves payloads out
Bytes are compared from the second record on: the header alone names the environment.
Results of runs from a checkout land in results/, which git ignores.
"""
