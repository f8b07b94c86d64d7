// A Graph that calls another one. Its agents count here too: they share ceiling, slots and cancel.
export const meta = { name: "research", description: "Asks several questions, and has each answer summarised." };

const questions = args.questions ?? ["Who found it?", "When?", "What came of it?"];

const summaries = await parallel(
  questions.map((question) => async () => {
    const text = await agent(question, { label: "research" });
    return graph("summarise", { text, words: 20 });
  }),
);
return Object.fromEntries(questions.map((question, index) => [question, summaries[index]]));
