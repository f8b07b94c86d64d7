// A fan-out inside the Graph: so many agents work at once, and the run ends with the slowest.
export const meta = { name: "fan", description: "Lets several agents do one thing each, at once." };

const width = args.width ?? 5;
return await parallel(Array.from({ length: width }, (_, number) => () => agent(`Part ${number}`)));
