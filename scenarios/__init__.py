"""What we try: scenario files, run and judged. The floor that wires everything.

source, places, problems, decode   a file's data, the place of every value, every mistake at once
spec, load, sweep, build           a file to cells, a cell to a simulator; drivers, other hosts
metrics, stats, expect, judge      what is measured, and the verdict, honest about chance
checks/, judging, swarm, explore   what must hold whatever goes wrong, and the search for it
run, runner, schedule, work        ranges of replications on all cores; folder, log_files keep them
results, render, formats, cli      what people read; proxy, control, toxics are `pullcord proxy`
"""
