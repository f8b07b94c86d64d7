// A Graph: a program that runs agents. Try it as it is, with agents that answer by chance:
//     pullcord graph run my_graph.js --args '{"files": ["a.py", "b.py"]}'
// What it may call: agent, parallel, pipeline, retry, graph, sleep, phase, log, args, budget.
export const meta = {
  name: "my-graph",
  description: "Reviews files in parallel, and sums the findings up.",
};

const files = args.files ?? ["first.py", "second.py", "third.py"];
const schema = {
  type: "object",
  properties: { finding: { type: "string" }, severity: { enum: ["none", "low", "high"] } },
  required: ["finding", "severity"],
};

phase("review");
// With `settle` one agent that fails takes no other with it.
const reviews = await parallel(
  files.map((file) => () =>
    retry(() => agent(`Review ${file}: what is its worst mistake?`, { label: file, schema }), {
      attempts: 3,
      backoffMs: 2000,
    }),
  ),
  { settle: true },
);
const found = reviews.filter((one) => one.ok && one.value.severity !== "none").map((one) => one.value);
log(`${found.length} of ${files.length} files have a finding`);
if (found.length === 0) return { found, summary: "nothing was found" };

phase("sum up");
const texts = found.map((one) => one.finding).join("\n");
return { found, summary: await agent(`Sum these findings up in a sentence:\n${texts}`, { label: "summary" }) };
