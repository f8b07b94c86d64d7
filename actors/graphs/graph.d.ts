// What a Graph's script finds, for editors. Put this beside your scripts and begin each with
//
//     // @ts-check
//     /// <reference path="./graph.d.ts" />
//
// See docs/graphs.md for what each function promises.

/** Anything that JSON can say: what goes in and comes out of agents, Graphs and scripts. */
type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** Why a request failed; also `code` of the error that a script ends with. */
type GraphErrorCode =
  | "token_ceiling"
  | "agent_failed"
  | "agent_timeout"
  | "agent_limit"
  | "graph_not_found"
  | "graph_depth"
  | "graph_limit"
  | "graph_failed"
  | "unawaited_agents"
  | "graph_stalled"
  | "result_not_json";

interface AgentOptions {
  /** A short name for logs; the prompt where there is none. */
  label?: string;
  /** The phase it belongs to, unless it is the current one. */
  phase?: string;
  /** The model that answers, unless it is the engine's own. */
  model?: string;
  /** A JSON Schema that the answer must keep; the value is then the parsed answer. */
  schema?: { [key: string]: Json };
  /** The most tokens that it may use. */
  maxTokens?: number;
  /** How long it may take, in milliseconds. */
  timeoutMs?: number;
  /**
   * The tools that it would like to use, by name. It gets those that the settings of the engine's
   * owner give to this Graph and to all that called it; the others are left out, which is no error.
   */
  tools?: string[];
}

type Task<T> = (() => T | PromiseLike<T>) | PromiseLike<T>;
type Settled<T> = { ok: true; value: T } | { ok: false; error: any };

interface RetryOptions {
  /** How often at most, from 1 to 10; 3 if it isn't said. */
  attempts?: number;
  /** How long it waits before the second attempt, in milliseconds; 0 if it isn't said. */
  backoffMs?: number;
  /** By how much longer it waits each time; 2 if it isn't said. */
  factor?: number;
  /** Whether an error is worth another attempt. */
  when?: (error: any, attempt: number) => boolean;
}

/** What the run was started with. */
declare const args: any;

/** Ask an agent. Rejects with AgentError, or BudgetError at the token ceiling. */
declare function agent<T = any>(prompt: string, options?: AgentOptions): Promise<T>;

/** Run another saved Graph and wait for its result. It shares this one's ceiling and limits. */
declare function graph<T = any>(name: string, args?: Json): Promise<T>;

/** Run tasks at the same time, at most 4,096, and wait until every one has ended. */
declare function parallel<T>(tasks: Iterable<Task<T>>, options?: { settle?: false }): Promise<T[]>;
declare function parallel<T>(tasks: Iterable<Task<T>>, options: { settle: true }): Promise<Settled<T>[]>;

/** Send each item through the stages, every item at its own pace. */
declare function pipeline<T, A>(
  items: Iterable<T>,
  first: (item: T, original: T, index: number) => A | PromiseLike<A>,
): Promise<A[]>;
declare function pipeline<T, A, B>(
  items: Iterable<T>,
  first: (item: T, original: T, index: number) => A | PromiseLike<A>,
  second: (previous: A, original: T, index: number) => B | PromiseLike<B>,
): Promise<B[]>;
declare function pipeline<T>(
  items: Iterable<T>,
  ...stages: ((previous: any, original: T, index: number) => any)[]
): Promise<any[]>;

/** Try again when it fails; never after the token ceiling or an error with `retryable: false`. */
declare function retry<T>(
  task: (attempt: number) => T | PromiseLike<T>,
  options?: RetryOptions,
): Promise<T>;

/** Wait, in the run's own time. */
declare function sleep(ms?: number): Promise<void>;
declare function setTimeout<A extends any[]>(callback: (...args: A) => void, ms?: number, ...args: A): number;
declare function clearTimeout(timer: number | undefined): void;

/** Begin a phase: agents from here on belong to it. */
declare function phase(title: string): void;

/** Say something in the run's log, at most 4,000 characters. */
declare function log(...values: any[]): void;
declare const console: {
  readonly log: typeof log;
  readonly info: typeof log;
  readonly warn: typeof log;
  readonly error: typeof log;
  readonly debug: typeof log;
};

/** The token ceiling of the whole run, sub-Graphs included. */
declare const budget: {
  /** null where there is no ceiling. */
  readonly total: number | null;
  readonly spent: number;
  /** Infinity where there is no ceiling. */
  readonly remaining: number;
};

declare class GraphError extends Error {
  constructor(message?: string, code?: string, info?: object);
  code: GraphErrorCode | string;
  /** Whether `retry` tries again. */
  retryable: boolean;
  /** What `parallel` had when the ceiling was reached: null for what was not there yet. */
  partial?: any[];
}
declare class AgentError extends GraphError {}
declare class BudgetError extends GraphError {}
