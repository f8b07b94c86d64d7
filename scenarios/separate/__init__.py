"""One operating-system process an actor: `--processes separate`.

report   what crosses between an actor's process and ours, in frames
lone     the world of one actor: its turns, timers, questions and store; child, its process's main
hub      the processes as we have them: started, greeted, stopped, killed, and their connections
world    the trio host whose actors take their turns elsewhere: links, faults, log and end are here
"""
