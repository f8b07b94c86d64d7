// Waiting: a script sleeps for as long as it likes, holds no slot meanwhile, and its clock is the run's own.
export const meta = { name: "patient", description: "Asks whether something is ready, less and less often." };

const begun = Date.now();
let pause = 5_000;
for (let question = 1; question <= 10; question++) {
  const { ready } = await agent("Is the build ready?", {
    schema: { type: "object", properties: { ready: { type: "boolean" } }, required: ["ready"] },
  });
  if (ready) return { questions: question, seconds: (Date.now() - begun) / 1000 };
  await sleep(pause);
  pause = Math.min(60_000, pause * 2);
}
throw new Error("the build was not ready in ten questions");
