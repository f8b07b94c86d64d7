// An agent with tools: it reads a folder by itself, and its owner is asked before a command runs.
// Try: pullcord graph run @graphs/minutes --tools @graphs/minutes/tools.toml
export const meta = { name: "minutes", description: "Sums notes up: its agent reads files, and asks before it runs a command." };

phase("read");
const summary = await agent("Sum up what is open in the folder notes.", {
  label: "reader",
  tools: ["list_files", "read_file"],
});

phase("count");
const words = await agent("How many words have the notes of Tuesday? Count them by the tool.", {
  label: "counter",
  tools: ["shell__count_words"],
  schema: { type: "object", properties: { words: { type: "integer" } }, required: ["words"] },
});
return { summary, ...words };
