// Tools: the agent may call those of these that its owner's settings give it; some calls wait for the owner.
export const meta = { name: "lookup", description: "Has one agent look something up with its tools." };

return await agent(args.what ?? "Find out which branch is deployed", { tools: ["shell", "read_file"] });
