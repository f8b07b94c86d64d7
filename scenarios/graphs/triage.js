// A conditional path: what the first agent finds decides who works next. Answers are checked by a schema.
export const meta = { name: "triage", description: "Sorts an issue, and works on it by its severity." };

const issue = args.issue ?? "The export button does nothing.";

phase("sort");
const found = await agent(`How severe is this issue, and where is it? ${issue}`, {
  label: "sort",
  schema: {
    type: "object",
    properties: {
      severity: { enum: ["low", "high"] },
      component: { enum: ["server", "relay", "engine"] },
    },
    required: ["severity", "component"],
    additionalProperties: false,
  },
});

if (found.severity === "low") {
  return { ...found, answer: await agent(`Write a polite answer to: ${issue}`, { label: "answer" }) };
}

phase("repair");
const cause = await agent(`Find the cause in the ${found.component}: ${issue}`, { label: "cause" });
const [patch, test] = await parallel([
  () => agent(`Write a patch for: ${cause}`, { label: "patch" }),
  () => agent(`Write a test for: ${cause}`, { label: "test" }),
]);
return { ...found, cause, patch, test };
