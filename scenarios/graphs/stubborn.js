// Bounded retries: an agent that fails is asked again, later each time, and never more than `attempts` times.
export const meta = { name: "stubborn", description: "Does tasks that may fail, each with several attempts." };

const tasks = args.tasks ?? 20;
const attempts = args.attempts ?? 3;

const ends = await parallel(
  Array.from({ length: tasks }, (_, number) => () =>
    retry(() => agent(`Do task ${number}`), { attempts, backoffMs: 1000, factor: 2 }),
  ),
  { settle: true },
);
return { done: ends.filter((one) => one.ok).length, failed: ends.filter((one) => !one.ok).length };
