// A hundred agents at once: whoever stands in the queue when the token ceiling is reached is refused.
export const meta = {
  name: "hundred",
  description: "How many of a hundred agents get through under the token ceiling.",
};

const found = await parallel(
  Array.from({ length: args.agents ?? 100 }, (_, number) => () => agent(`Review file ${number}`)),
  { settle: true },
).catch((error) => {
  if (error.code !== "token_ceiling") throw error;
  return error.partial; // what was done before the ceiling is not lost
});
return { done: found.filter((one) => one !== null && one.ok !== false).length };
