// Tools: the agent may call those of these that its owner's settings give it; some calls wait for the owner.
export const meta = { name: "errand", description: "Has one agent do something with its tools." };

return await agent(args.errand ?? "Find out which branch is deployed", { tools: ["shell", "read_file"] });
