"""An engine of your own. `pullcord run my_engine.toml` compares it with the built-in one."""

from __future__ import annotations

from typing import Annotated

from pullcord import Context, Engine, messages


class MyEngine(Engine):
    """Lets a Graph fail that has used more tokens than its budget."""

    class Config(Engine.Config, frozen=True, kw_only=True):
        """The keys of [engine] in a scenario: the built-in engine's, and these."""

        budget: Annotated[int, "the tokens that a Graph may use"] = 1_500

    config: Config

    def outcome(self, context: Context, execution_id: str) -> messages.Completion:
        """Draw what a Graph gives, as every engine does, then look at its tokens."""
        done = super().outcome(context, execution_id)
        if done.total_tokens <= self.config.budget:
            return done
        return messages.Completion(
            execution_id=execution_id,
            status="failed",
            total_tokens=done.total_tokens,
            reported_cost=done.reported_cost,
            error="the Graph is over its budget of tokens",
        )
