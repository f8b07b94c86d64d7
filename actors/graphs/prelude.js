// What a Graph's script finds around it, and the three calls by which the host drives it.
//
// Theory of operation. The host calls for a start or a settle, runs the job queue dry, and calls for a
// take, which returns one turn as JSON text. Whatever the script asks for is appended to the turn;
// the host's answers resolve the promises. No Python object and no Python function ever gets in.
//
// The script may replace any built-in method. So what talks to the host uses only what was captured
// here before the script ran, null-prototype objects, bound methods and primitive strings; the rest
// (parallel, retry ...) is the script's own code, and breaking it harms the script alone.
//
// Compiling this file is nine tenths of a script's start, so it is written for the engine's compiler:
// - what many scripts never name (prelude_flow.js, prelude_dates.js) comes as text in `parts`, and is
//   compiled when a script first uses it;
// - at the top stands `var`, which the engine finds by hash, and a `const` by a walk along a list;
// - the host puts `0,` in front: behind a `(` the engine reads all of it twice, to find an arrow.
function prelude(parts) {
'use strict';

var { stringify, parse } = JSON, { isArray } = Array, { floor, min } = Math;
var { isFinite, isInteger, MAX_SAFE_INTEGER } = Number, iteratorOf = Symbol.iterator;
var { create, defineProperty, freeze, keys } = Object, { apply, construct } = Reflect;
var Native = freeze({ Promise, Error, Date, AggregateError, String });
var uncurry = method => (self, ...rest) => apply(method, self, rest);
var then = uncurry(Promise.prototype.then), slice = uncurry(String.prototype.slice);
var wellFormed = uncurry(String.prototype.toWellFormed);
var tagOf = uncurry(Object.prototype.toString), matches = uncurry(RegExp.prototype.exec);
var evaluate = eval; // called by another name, it evaluates in the global scope

var DEPTH_LIMIT = 100;        // of JSON: a cycle, or more than anyone reads
var TEXT_LIMIT_CHARS = 4000;  // of a log line
var ERROR_LIMIT_CHARS = 8000; // of an error's message, and of its stack
var ERRORS_LIMIT = 20;        // of an AggregateError
var STACKS_LIMIT = 256;       // pending calls that remember where they were made
var SHOWN_LIMIT_CHARS = 64000; // of a value's JSON, before it is cut for a log line
var PAD_LINES = 1000;         // the script's line 1 is the engine's 1001, so frames are told apart

// Errors

var RETRYABLE = freeze({
  __proto__: null, agent_failed: true, agent_timeout: true, graph_failed: true,
});
class GraphError extends Error {
  constructor(message, code = 'graph_failed', info = {}) {
    super(message);
    define(this, 'code', code);
    define(this, 'retryable', RETRYABLE[code] === true);
    const names = keys(info);
    for (let i = 0; i < names.length; i++) define(this, names[i], info[names[i]]);
  }
  toJSON() {
    const { name, message, code, retryable } = this;
    return { name, message, code, retryable };
  }
}
class AgentError extends GraphError {
  constructor(message, code = 'agent_failed', info = {}) { super(message, code, info); }
}
class BudgetError extends GraphError {
  constructor(message, code = 'token_ceiling', info = {}) { super(message, code, info); }
}
var define = (object, key, value) =>
  defineProperty(object, key,
    { __proto__: null, value, writable: true, configurable: true, enumerable: true });
for (const kind of [GraphError, AgentError, BudgetError]) {
  defineProperty(kind.prototype, 'name', { value: kind.name, writable: true, configurable: true });
}
var KINDS = freeze({ __proto__: null, agent: AgentError, budget: BudgetError, graph: GraphError });
var isFatal = error => error instanceof BudgetError || error?.code === 'cancelled';

// JSON, written by hand: JSON.stringify drops what it can't write, and calls the script's toJSON

var RESULT = 'the result';
var subject = '';               // what is being written
var where = create(null);     // the way to its part
var room = 0, flooded = false;  // characters left in this turn
var showing = false;            // a value in a log line: it is cut, so its length is nobody's fault
var takeRoom = chars => {
  room -= chars;
  if (room >= 0) return;
  if (!showing) flooded = true;
  throw new RangeError('the output limit of one turn is reached');
};
var quote = string => {
  if (string.length > room) takeRoom(string.length);
  const written = stringify(wellFormed(string));
  takeRoom(written.length);
  return written;
};
var refuse = (depth, what) => {
  let path = '';
  for (let i = 0; i < depth; i++) {
    path += typeof where[i] === 'number' ? '[' + where[i] + ']' : (path && '.') + where[i];
  }
  const error = new TypeError(subject + ': ' + what + (path ? ' at ' + path : '') + ' is not JSON');
  if (subject === RESULT) define(error, 'code', 'result_not_json');
  throw error;
};
var write = (value, depth = 0) => {
  switch (typeof value) {
    case 'string': return quote(value);
    case 'boolean': takeRoom(4); return value ? 'true' : 'false';
    case 'number':
      if (!isFinite(value)) refuse(depth, '' + value);
      takeRoom(8);
      return value === 0 ? '0' : '' + value;
    case 'object': return value === null ? 'null' : writeObject(value, depth);
    case 'undefined': return 'null';
    default: return refuse(depth, typeof value === 'bigint' ? 'a BigInt' : 'a ' + typeof value);
  }
};
var writeObject = (value, depth) => {
  if (depth >= DEPTH_LIMIT) {
    refuse(3, 'a cycle, or a value nested more than ' + DEPTH_LIMIT + ' levels deep,');
  }
  if (isArray(value)) return writeArray(value, depth);
  if (typeof value.toJSON === 'function') {
    where[depth] = 'toJSON()';
    return write(value.toJSON(), depth + 1);
  }
  if (value instanceof Native.Error) return writeError(value);
  const tag = tagOf(value);
  if (tag !== '[object Object]') refuse(depth, 'a ' + slice(tag, 8, -1));
  let text = '';
  const names = keys(value);
  for (let i = 0; i < names.length; i++) {
    const key = names[i], each = value[key];
    if (each === undefined) continue;
    where[depth] = key;
    text += (text && ',') + quote(key) + ':' + write(each, depth + 1);
  }
  return '{' + text + '}';
};
var writeArray = (value, depth) => {
  let text = '';
  const { length } = value;
  for (let i = 0; i < length; i++) {
    where[depth] = i;
    takeRoom(1);
    text += (i ? ',' : '') + write(value[i], depth + 1);
  }
  return '[' + text + ']';
};
var writeError = error =>
  '{"name":' + quote(words(error.name)) + ',"message":' + quote(words(error.message)) + '}';
var writeAs = (name, value) => {
  subject = name;
  return write(value);
};

// JSON for people: a value that is none, or too long, has a word for it.
var show = value => {
  const kept = room, outer = showing;
  room = SHOWN_LIMIT_CHARS;
  showing = true;
  try {
    return write(value);
  } catch {
    return room < 0 ? 'a value of more than ' + SHOWN_LIMIT_CHARS + ' characters' : tagOf(value);
  } finally {
    room = kept;
    showing = outer;
  }
};
// Any value in words, of at most `limit` characters. An endless toString ends with the time limit.
var words = (value, limit = ERROR_LIMIT_CHARS) => {
  let text;
  try {
    if (value instanceof Native.Error) text = words(value.name) + ': ' + words(value.message);
    else if (typeof value === 'object' && value !== null) text = show(value);
    else text = Native.String(value);
  } catch {
    text = 'a value that has no words';
  }
  return text.length > limit ? slice(text, 0, limit) + '…' : text;
};

// The turn

var requests = create(null), requestCount = 0, notices = create(null), noticeCount = 0;
var serial = 0, waiting = 0, sleeping = 0, finished = null, raced = false;
var bound = (map, name) => map[name].bind(map);
var calls = new Map(), unseen = new Map();
var callOf = bound(calls, 'get'), keepCall = bound(calls, 'set'), dropCall = bound(calls, 'delete');
var see = bound(unseen, 'delete'), keepUnseen = bound(unseen, 'set');
var eachUnseen = bound(unseen, 'forEach');

var notify = (type, text, rest = '') => {
  const written = '{"type":"' + type + '","text":' + quote(text) + rest + ',"after":' + serial + '}';
  takeRoom(60);
  notices[noticeCount++] = written;
};
var request = (op, body, resolve, reject) => {
  takeRoom(60);
  const id = ++serial;
  requests[requestCount++] = '{"id":' + id + ',"op":"' + op + '"' + body + '}';
  const stack = reject !== undefined && waiting < STACKS_LIMIT ? new Native.Error().stack : '';
  keepCall(id, { __proto__: null, resolve, reject, stack });
  waiting++;
  if (op === 'sleep') sleeping++;
  return id;
};

// A promise that knows whether anyone has waited for it. `await`, Promise.all and the rest call the
// `then` of a subclass, so nothing of the script's own promises is patched.
var makeCall;
class Call extends Promise {
  #id = 0;
  static get [Symbol.species]() { return Native.Promise; }
  static {
    makeCall = (op, body, label) => {
      let resolve, reject;
      const call = new Call((one, other) => { resolve = one; reject = other; });
      call.#id = request(op, body, resolve, reject);
      keepUnseen(call.#id, label);
      return call;
    };
  }
  then(fulfilled, rejected) {
    see(this.#id);
    return then(this, fulfilled, rejected);
  }
}
freeze(Call.prototype);
freeze(Call);

// What the script calls

var OPTIONS = freeze({
  __proto__: null,
  label: value => typeof value === 'string' ? quote(value) : expected('label', 'a string'),
  phase: value => typeof value === 'string' ? quote(value) : expected('phase', 'a string'),
  model: value => typeof value === 'string' ? quote(value) : expected('model', 'a string'),
  schema: value => typeof value === 'object' && value !== null && !isArray(value)
    ? writeAs('agent(): schema', value) : expected('schema', 'a JSON Schema, an object'),
  maxTokens: value => isInteger(value) && value > 0 && value <= MAX_SAFE_INTEGER
    ? '' + value : expected('maxTokens', 'a whole number above 0'),
  timeoutMs: value => isFinite(value) && value > 0
    ? '' + value : expected('timeoutMs', 'a number above 0'),
  tools: value => {
    if (!isArray(value)) expected('tools', 'an array of names');
    for (let i = 0; i < value.length; i++) {
      if (typeof value[i] !== 'string') expected('tools', 'an array of names');
    }
    return writeAs('agent(): tools', value);
  },
});
var expected = (option, what) => { throw new TypeError('agent(): ' + option + ' must be ' + what); };

var phaseTitle = null;
var agent = (prompt, options = {}) => {
  if (typeof prompt !== 'string') throw new TypeError('agent(prompt): prompt must be a string');
  if (typeof options !== 'object' || options === null) {
    throw new TypeError('agent(prompt, options): options must be an object');
  }
  let text = '', hasPhase = false;
  const names = keys(options);
  for (let i = 0; i < names.length; i++) {
    const key = names[i];
    if (OPTIONS[key] === undefined) {
      throw new TypeError('agent(): no option ' + quote(key) + '; there are label, phase, model, schema, '
        + 'maxTokens, timeoutMs and tools');
    }
    const value = options[key];
    if (value === undefined) continue;
    if (key === 'phase') hasPhase = true;
    text += (text && ',') + '"' + key + '":' + OPTIONS[key](value);
  }
  if (!hasPhase && phaseTitle !== null) text += (text && ',') + '"phase":' + quote(phaseTitle);
  const label = typeof options.label === 'string' ? options.label : prompt;
  return makeCall('agent', ',"prompt":' + quote(prompt) + ',"options":{' + text + '}', label);
};

var graph = (name, args = null) => {
  if (typeof name !== 'string') throw new TypeError('graph(name): name must be a string');
  return makeCall('graph', ',"name":' + quote(name) + ',"args":' + writeAs('graph(): args', args), 'graph ' + name);
};

var after = (ms, name, done) => {
  const delay = +ms;
  if (!isFinite(delay)) throw new RangeError(name + ': the time must be a finite number of milliseconds');
  request('sleep', ',"ms":' + (delay > 0 ? delay : 0), done, undefined);
};
var sleep = (ms = 0) => new Native.Promise(resolve => after(ms, 'sleep(ms)', resolve));

var phase = title => {
  phaseTitle = words(title, TEXT_LIMIT_CHARS);
  notify('phase', phaseTitle);
};
var say = level => (...values) => {
  let text = '';
  for (let i = 0; i < values.length && text.length <= TEXT_LIMIT_CHARS; i++) {
    text += (i ? ' ' : '') + words(values[i], TEXT_LIMIT_CHARS);
  }
  notify('log', text.length > TEXT_LIMIT_CHARS ? slice(text, 0, TEXT_LIMIT_CHARS) + '…' : text,
    ',"level":"' + level + '"');
};
var log = say('info');
var console = freeze({ log, info: log, warn: say('warn'), error: say('error'), debug: say('debug') });

var now = 0, spent = 0, total = null;
var budget = freeze({
  get total() { return total; },
  get spent() { return spent; },
  get remaining() { return total === null ? Infinity : total > spent ? total - spent : 0; },
});

// Chance: sfc32, from the run's seed

var a = 0, b = 0, c = 0, d = 0;
var random = () => {
  const drawn = (a + b | 0) + d | 0;
  d = d + 1 | 0;
  a = b ^ b >>> 9;
  b = c + (c << 3) | 0;
  c = c << 21 | c >>> 11;
  c = c + drawn | 0;
  return (drawn >>> 0) / 4294967296;
};

// The end

var writtenIfJson = value => {
  try { return writeAs('partial', value); } catch { return 'null'; }
};
var field = (value, key) => {
  try { return value[key]; } catch { return undefined; }
};
// With no memory left even for an error, the engine throws null, or a value of no type. A null is the
// engine's where the source has nothing that could throw one; else the host looks at the memory.
var NO_MEMORY = '{"name":"InternalError","message":"out of memory"}';
var NULL = '{"name":"Error","message":"null was thrown: by the script, or for want of memory"}';
var mayThrow = false;
var TYPES = freeze({
  __proto__: null, undefined: true, object: true, boolean: true, number: true, bigint: true,
  string: true, symbol: true, function: true,
});
var describe = error => {
  if (error === null) return mayThrow ? NULL : NO_MEMORY;
  if (!TYPES[typeof error]) return NO_MEMORY;
  const thrown = typeof error === 'object' ? error : create(null);
  const name = field(thrown, 'name'), message = field(thrown, 'message'), code = field(thrown, 'code');
  const stack = field(thrown, 'stack'), errors = field(thrown, 'errors'), partial = field(thrown, 'partial');
  let text = '{"name":' + quote(typeof name === 'string' ? words(name) : 'Error');
  text += ',"message":' + quote(words(typeof message === 'string' ? message : error));
  if (typeof stack === 'string') text += ',"stack":' + quote(words(stack));
  if (typeof code === 'string') text += ',"code":' + quote(words(code));
  if (isArray(errors)) {
    let each = '';
    for (let i = 0; i < errors.length && i < ERRORS_LIMIT; i++) each += (each && ',') + quote(words(errors[i]));
    text += ',"errors":[' + each + ']';
  }
  if (partial !== undefined) text += ',"partial":' + writtenIfJson(partial);
  return text + '}';
};
var fail = error => {
  if (finished !== null) return;
  finished = '{"error":{"name":"Error","message":"an error that has no words"}}';
  finished = '{"error":' + describe(error) + '}';
};
var forgotten = (count, rest) => fail(new GraphError(
  'the script ended ' + (count === 1 ? 'before a call' : 'before ' + count + ' calls')
  + ' of agent() or graph()' + rest, 'unawaited_agents'));
var end = value => {
  if (finished !== null) return;
  let names = '', count = 0;
  eachUnseen(label => { if (count++ < 3) names += (names && ', ') + quote(words(label, 60)); });
  if (count) return forgotten(count, ' that nothing waits for: ' + names + '. Await each of them');
  count = waiting - sleeping;
  if (count && !raced) return forgotten(count, ' did. Await the promise that waits for them');
  try {
    finished = '{"value":' + writeAs(RESULT, value) + '}';
  } catch (error) {
    fail(error);
  }
};

// The parts that are compiled at their first use: what they need of this file is in the kit

var kit = freeze({
  __proto__: null, Native, TEXT_LIMIT_CHARS, after, bound, construct, defineProperty, fail, floor, isFatal,
  isFinite, isInteger, iteratorOf, matches, min, notify, sleep, slice, then, uncurry, words, now: () => now,
});
var loaded = create(null);
var load = name => loaded[name] ??= evaluate(parts[name])(kit);
var later = name => (
  { [name](...rest) { return apply(load('flow')[name], undefined, rest); } }[name]);

// What the script finds, and what it doesn't

var give = (key, value) =>
  defineProperty(globalThis, key, { value, writable: false, configurable: false, enumerable: false });
var given = {
  agent, graph, sleep, phase, log, budget, console, GraphError, AgentError, BudgetError,
};
for (const key of keys(given)) give(key, given[key]);
for (const name of ['parallel', 'pipeline', 'retry', 'setTimeout', 'clearTimeout']) give(name, later(name));
defineProperty(globalThis, 'Date', {
  get: () => load('dates'), set: undefined, configurable: false, enumerable: false,
});
defineProperty(Math, 'random', { value: random, writable: false, configurable: false });
// Another clock, jobs of an error that nobody sees, when memory is freed, threads.
var REMOVED = [
  'performance', 'queueMicrotask', 'WeakRef', 'FinalizationRegistry', 'SharedArrayBuffer', 'Atomics',
];
for (const key of REMOVED) delete globalThis[key];
// It would hand out the functions of this file.
defineProperty(Error, 'prepareStackTrace', { value: undefined, writable: false, configurable: false });
// Who takes part in a race may lose it, and then runs on when the script ends: no forgotten agent.
for (const name of ['race', 'any']) {
  const native = uncurry(Promise[name]);
  const value = { [name](entrants) { raced = true; return native(this, entrants); } }[name];
  defineProperty(Promise, name, { value, writable: true, configurable: true, enumerable: false });
}

// What the host calls

var roomOfTurn = 0;
var enter = message => {
  ({ now_ms: now, spent, total } = message);
  room = roomOfTurn;
};
var start = text => {
  const message = parse(text);
  roomOfTurn = message.room;
  enter(message);
  [a, b, c, d] = message.seed;
  mayThrow = message.source.includes('throw') || message.source.includes('reject');
  for (let i = 0; i < 15; i++) random(); // a seed of few bits is mixed by then
  try {
    const head = '\n'.repeat(PAD_LINES - 1) + '"use strict";(async function (args) {\n';
    const script = evaluate(head + message.source + '\n})');
    then(apply(script, undefined, [message.args]), end, fail);
  } catch (error) {
    fail(error);
  }
};
var answer = (id, ok, value) => {
  const call = callOf(id);
  if (call === undefined) return;
  dropCall(id);
  waiting--;
  if (call.reject === undefined) sleeping--;
  if (ok || call.reject === undefined) return call.resolve(value);
  const error = new KINDS[value.kind](value.message, value.code, value.info);
  if (call.stack) define(error, 'stack', call.stack);
  call.reject(error);
};
var settle = text => {
  const message = parse(text);
  enter(message);
  try {
    const { settlements } = message;
    for (let i = 0; i < settlements.length; i++) {
      answer(settlements[i][0], settlements[i][1], settlements[i][2]);
    }
  } catch (error) {
    fail(error);
  }
};
var joined = (items, count) => {
  let text = '[';
  for (let i = 0; i < count; i++) text += (i ? ',' : '') + items[i];
  return text + ']';
};
// One turn, to be called when no job is left; an empty text when there was no room for it.
var take = () => {
  if (finished === null && waiting === 0) {
    fail(new GraphError('the script waits for a promise that nothing will settle', 'graph_stalled'));
  }
  if (flooded) return '';
  let text = '{"requests":' + (finished === null ? joined(requests, requestCount) : '[]');
  text += ',"notices":' + joined(notices, noticeCount);
  if (finished !== null) text += ',"finished":' + finished;
  requests = create(null);
  notices = create(null);
  requestCount = noticeCount = 0;
  return slice(text + ',"pending":' + waiting + '}', 0); // one piece: the host can't read a rope
};
return (op, text) => op === 'settle' ? settle(text) : op === 'start' ? start(text) : take();
}
