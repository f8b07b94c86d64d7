// A pipeline: each text goes through all stages by itself, so none waits for the slowest of another stage.
export const meta = { name: "translate", description: "Translates texts, checks each, and notes its length." };

const texts = args.texts ?? ["Good morning", "The train is late", "See you soon"];

return await pipeline(
  texts,
  (text) => agent(`Translate into Japanese: ${text}`, { phase: "translate" }),
  (translation, text) => agent(`Is "${translation}" right for "${text}"?`, { phase: "check" }),
  (verdict, text, index) => ({ index, text, verdict }),
);
