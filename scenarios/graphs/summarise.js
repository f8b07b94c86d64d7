// A small Graph, for others to call: what it returns is what `graph("summarise", ...)` gives.
export const meta = { name: "summarise", description: "Summarises a text in so many words." };

const { text = "", words = 50 } = args;
if (text === "") throw new Error("there is no text to summarise");
return await agent(`Summarise in ${words} words: ${text}`, { label: "summarise" });
