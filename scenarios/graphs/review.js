// Parallel agents of which some may fail: `settle` keeps what the others found.
export const meta = { name: "review", description: "Reviews files in parallel, and sums the findings up." };

const files = args.files ?? ["server.py", "relay.py", "engine.py", "agent.py"];

phase("review");
const reviews = await parallel(
  files.map((file) => () => agent(`Review ${file}`, { label: file, timeoutMs: 120_000 })),
  { settle: true },
);
const notes = reviews.flatMap((one) => (one.ok ? [one.value] : []));
const failed = files.filter((_, index) => !reviews[index].ok);
for (const file of failed) log("no review of", file);

phase("sum up");
const summary = notes.length ? await agent(`Sum up: ${notes.join("; ")}`) : "nothing was reviewed";
return { summary, reviewed: notes.length, failed };
