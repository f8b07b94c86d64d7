"""The report: one HTML file that a person reads without any tool, and plots for the terminal.

reload    results from their folder's journal     story     a replication, told again for its plots
scale     axes: ticks, units, numbers             svg       drawings as text, rounded and escaped
interval  a figure against what was wanted        ecdf      a metric's distribution, a panel a cell
strip     when each fault acted                   swimlane  who said what to whom around a failure
moments   which replications are shown, and why   words     verdicts and failures in sentences
view      all that is said of one scenario        page      all of it in one file, from a template
bars      a metric in one line of a terminal      command   what `report` and `run --report` do
"""
