// A loop that minds its budget: it looks for more as long as there are tokens, and stops in time.
export const meta = { name: "thorough", description: "Looks for mistakes until its tokens are nearly used up." };

const each = args.each ?? 500;
const rounds = args.rounds ?? 50;

const found = [];
while (found.length < rounds && budget.remaining >= each) {
  found.push(await agent(`Find a mistake besides ${found.length} known ones`, { maxTokens: each }));
}
log(`${found.length} rounds, ${budget.spent} of ${budget.total ?? "any number of"} tokens`);
return { rounds: found.length };
