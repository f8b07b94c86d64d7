// What a Graph's script finds around it, and the three calls by which the host drives it.
//
// Theory of operation. The host calls start(text) or settle(text), runs the job queue dry, and calls
// take(), which returns one turn as JSON text. Whatever the script asks for is appended to the turn;
// the host's answers resolve the promises. No Python object and no Python function ever gets in.
//
// The script may replace any built-in method. So what talks to the host uses only what was captured
// here before the script ran, null-prototype objects, bound methods and primitive strings; the rest
// (parallel, retry ...) is the script's own code, and breaking it harms the script alone.
(function () {
'use strict';

const { stringify, parse } = JSON, { isArray } = Array, { floor, min } = Math;
const { isFinite, isInteger, MAX_SAFE_INTEGER } = Number, iteratorOf = Symbol.iterator;
const { create, defineProperty, freeze, keys } = Object, { apply, construct } = Reflect;
const Native = freeze({ Promise, Error, Date, AggregateError, String });
const uncurry = method => (self, ...rest) => apply(method, self, rest);
const then = uncurry(Promise.prototype.then), slice = uncurry(String.prototype.slice);
const wellFormed = uncurry(String.prototype.toWellFormed);
const tagOf = uncurry(Object.prototype.toString);
const evaluate = eval; // called by another name, it evaluates in the global scope

const LIST_LIMIT = 4096;        // a pending agent takes 3.3 KB of script memory
const ATTEMPTS_LIMIT = 10;      // a retry of a retry multiplies
const DEPTH_LIMIT = 100;        // of JSON: a cycle, or more than anyone reads
const TEXT_LIMIT_CHARS = 4000;  // of a log line
const ERROR_LIMIT_CHARS = 8000; // of an error's message, and of its stack
const ERRORS_LIMIT = 20;        // of an AggregateError
const STACKS_LIMIT = 256;       // pending calls that remember where they were made
const SHOWN_LIMIT_CHARS = 64000; // of a value's JSON, before it is cut for a log line
const RETRY_LIMIT_MS = 86400000; // a day: a backoff that grows on is a mistake
const PAD_LINES = 1000;         // the script's line 1 is the engine's 1001, so frames are told apart

// Errors

const RETRYABLE = freeze({
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
const define = (object, key, value) =>
  defineProperty(object, key,
    { __proto__: null, value, writable: true, configurable: true, enumerable: true });
for (const kind of [GraphError, AgentError, BudgetError]) {
  defineProperty(kind.prototype, 'name', { value: kind.name, writable: true, configurable: true });
}
const KINDS = freeze({ __proto__: null, agent: AgentError, budget: BudgetError, graph: GraphError });
const isFatal = error => error instanceof BudgetError || error?.code === 'cancelled';

// JSON, written by hand: JSON.stringify drops what it can't write, and calls the script's toJSON

const RESULT = 'the result';
let subject = '';               // what is being written
const where = create(null);     // the way to its part
let room = 0, flooded = false;  // characters left in this turn
let showing = false;            // a value in a log line: it is cut, so its length is nobody's fault
const takeRoom = chars => {
  room -= chars;
  if (room >= 0) return;
  if (!showing) flooded = true;
  throw new RangeError('the output limit of one turn is reached');
};
const quote = string => {
  if (string.length > room) takeRoom(string.length);
  const written = stringify(wellFormed(string));
  takeRoom(written.length);
  return written;
};
const refuse = (depth, what) => {
  let path = '';
  for (let i = 0; i < depth; i++) {
    path += typeof where[i] === 'number' ? '[' + where[i] + ']' : (path && '.') + where[i];
  }
  const error = new TypeError(subject + ': ' + what + (path ? ' at ' + path : '') + ' is not JSON');
  if (subject === RESULT) define(error, 'code', 'result_not_json');
  throw error;
};
const write = (value, depth = 0) => {
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
const writeObject = (value, depth) => {
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
const writeArray = (value, depth) => {
  let text = '';
  const { length } = value;
  for (let i = 0; i < length; i++) {
    where[depth] = i;
    takeRoom(1);
    text += (i ? ',' : '') + write(value[i], depth + 1);
  }
  return '[' + text + ']';
};
const writeError = error =>
  '{"name":' + quote(words(error.name)) + ',"message":' + quote(words(error.message)) + '}';
const writeAs = (name, value) => {
  subject = name;
  return write(value);
};

// JSON for people: a value that is none, or too long, has a word for it.
const show = value => {
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
const words = (value, limit = ERROR_LIMIT_CHARS) => {
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

let requests = create(null), requestCount = 0, notices = create(null), noticeCount = 0;
let serial = 0, waiting = 0, sleeping = 0, finished = null, raced = false;
const bound = (map, name) => map[name].bind(map);
const calls = new Map(), unseen = new Map();
const callOf = bound(calls, 'get'), keepCall = bound(calls, 'set'), dropCall = bound(calls, 'delete');
const see = bound(unseen, 'delete'), keepUnseen = bound(unseen, 'set');
const eachUnseen = bound(unseen, 'forEach');

const notify = (type, text, rest = '') => {
  const written = '{"type":"' + type + '","text":' + quote(text) + rest + ',"after":' + serial + '}';
  takeRoom(60);
  notices[noticeCount++] = written;
};
const request = (op, body, resolve, reject) => {
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
let makeCall;
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

const OPTIONS = freeze({
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
const expected = (option, what) => { throw new TypeError('agent(): ' + option + ' must be ' + what); };

let phaseTitle = null;
const agent = (prompt, options = {}) => {
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

const graph = (name, args = null) => {
  if (typeof name !== 'string') throw new TypeError('graph(name): name must be a string');
  return makeCall('graph', ',"name":' + quote(name) + ',"args":' + writeAs('graph(): args', args), 'graph ' + name);
};

const after = (ms, name, done) => {
  const delay = +ms;
  if (!isFinite(delay)) throw new RangeError(name + ': the time must be a finite number of milliseconds');
  request('sleep', ',"ms":' + (delay > 0 ? delay : 0), done, undefined);
};
const sleep = (ms = 0) => new Native.Promise(resolve => after(ms, 'sleep(ms)', resolve));

let timerSerial = 0;
const timers = new Map(), keepTimer = bound(timers, 'set'), dropTimer = bound(timers, 'delete');
const setTimeout = (callback, ms = 0, ...rest) => {
  if (typeof callback !== 'function') {
    throw new TypeError('setTimeout(callback, ms): callback must be a function');
  }
  const timer = ++timerSerial;
  after(ms, 'setTimeout(callback, ms)', () => {
    if (!dropTimer(timer)) return;
    then(new Native.Promise(resolve => resolve(callback(...rest))), undefined, fail);
  });
  keepTimer(timer, true);
  return timer;
};
const clearTimeout = timer => { dropTimer(timer); };

const itemsOf = (name, items) => {
  if (items === null || items === undefined || typeof items[iteratorOf] !== 'function') {
    throw new TypeError(name + ' must be an array');
  }
  const list = [];
  for (const item of items) {
    if (list.length >= LIST_LIMIT) {
      throw new RangeError(name + ' may have at most ' + LIST_LIMIT + ' items: work through more in parts');
    }
    list.push(item);
  }
  return list;
};
const begin = task => new Native.Promise(resolve => resolve(typeof task === 'function' ? task() : task));
const resultOf = each => each.status === 'fulfilled' ? each.value : each.reason?.partial ?? null;

// Every task settles before this does, so nothing goes on unseen.
const parallel = async (tasks, { settle = false } = {}) => {
  const ends = await Native.Promise.allSettled(itemsOf('parallel(tasks): tasks', tasks).map(begin));
  const errors = ends.filter(each => each.status === 'rejected').map(each => each.reason);
  const fatal = errors.find(isFatal);
  if (fatal) {
    fatal.partial = ends.map(resultOf);
    throw fatal;
  }
  if (settle) {
    return ends.map(each => each.status === 'fulfilled'
      ? { ok: true, value: each.value } : { ok: false, error: each.reason });
  }
  if (errors.length === 1) throw errors[0];
  if (errors.length) {
    throw new Native.AggregateError(errors, errors.length + ' of ' + ends.length + ' parallel tasks failed');
  }
  return ends.map(each => each.value);
};

const pipeline = async (items, ...stages) => {
  for (const stage of stages) {
    if (typeof stage !== 'function') {
      throw new TypeError('pipeline(items, ...stages): a stage must be a function');
    }
  }
  return parallel(itemsOf('pipeline(items): items', items).map((item, index) => async () => {
    let value = item;
    for (const stage of stages) value = await stage(value, item, index);
    return value;
  }));
};

const retry = async (task, { attempts = 3, backoffMs = 0, factor = 2, when = () => true } = {}) => {
  if (typeof task !== 'function') throw new TypeError('retry(task): task must be a function');
  if (!(isInteger(attempts) && attempts >= 1 && attempts <= ATTEMPTS_LIMIT)) {
    throw new RangeError('retry: attempts must be a whole number from 1 to ' + ATTEMPTS_LIMIT);
  }
  if (!(isFinite(backoffMs) && backoffMs >= 0 && isFinite(factor) && factor >= 0)) {
    throw new RangeError('retry: backoffMs and factor must be finite and not negative');
  }
  for (let attempt = 1; ; attempt++) {
    try {
      return await task(attempt);
    } catch (error) {
      if (attempt >= attempts || isFatal(error) || error?.retryable === false) throw error;
      if (!when(error, attempt)) throw error;
      const delay = backoffMs && min(backoffMs * factor ** (attempt - 1), RETRY_LIMIT_MS);
      notify('retry', words(error, TEXT_LIMIT_CHARS), ',"attempt":' + attempt + ',"delay_ms":' + delay);
      if (delay > 0) await sleep(delay);
    }
  }
};
const phase = title => {
  phaseTitle = words(title, TEXT_LIMIT_CHARS);
  notify('phase', phaseTitle);
};
const say = level => (...values) => {
  let text = '';
  for (let i = 0; i < values.length && text.length <= TEXT_LIMIT_CHARS; i++) {
    text += (i ? ' ' : '') + words(values[i], TEXT_LIMIT_CHARS);
  }
  notify('log', text.length > TEXT_LIMIT_CHARS ? slice(text, 0, TEXT_LIMIT_CHARS) + '…' : text,
    ',"level":"' + level + '"');
};
const log = say('info');
const console = freeze({ log, info: log, warn: say('warn'), error: say('error'), debug: say('debug') });

let now = 0, spent = 0, total = null;
const budget = freeze({
  get total() { return total; },
  get spent() { return spent; },
  get remaining() { return total === null ? Infinity : total > spent ? total - spent : 0; },
});

// Chance: sfc32, from the run's seed

let a = 0, b = 0, c = 0, d = 0;
const random = () => {
  const drawn = (a + b | 0) + d | 0;
  d = d + 1 | 0;
  a = b ^ b >>> 9;
  b = c + (c << 3) | 0;
  c = c << 21 | c >>> 11;
  c = c + drawn | 0;
  return (drawn >>> 0) / 4294967296;
};

// Time: the run's own, in UTC whatever the machine's zone

const DATE_ALONE = /^\s*[+-]?\d{4,6}(-\d\d(-\d\d)?)?\s*$/; // UTC by the language
const NAMES_ZONE = /:\d\d.*([+-]\d\d:?\d\d|\b(Z|UTC?|GMT|[ECMP][SD]T)|\dZ)\s*(\(.*\))?\s*$/i;
const matches = uncurry(RegExp.prototype.exec);
const inUtc = text => {
  if (matches(DATE_ALONE, text) || matches(NAMES_ZONE, text)) return text;
  return text + (matches(/\d[Tt]\d/, text) ? 'Z' : ' UTC');
};
const { parse: nativeParse, UTC } = Native.Date;
const timeOf = values => {
  if (values.length === 0) return now;
  if (values.length > 1) return UTC(...values);
  const value = values[0];
  if (value instanceof Native.Date) return +value;
  const plain = typeof value === 'object' && value !== null ? '' + value : value;
  return typeof plain === 'string' ? nativeParse(inUtc(plain)) : plain;
};
function VirtualDate(...values) {
  if (!new.target) return new VirtualDate().toString();
  return construct(Native.Date, [timeOf(values)], new.target);
}
defineProperty(VirtualDate, 'name', { value: 'Date' });
defineProperty(VirtualDate, 'length', { value: 7 });
const date = Native.Date.prototype;
defineProperty(VirtualDate, 'prototype', { value: date, writable: false });
const hide = (object, key, value) =>
  defineProperty(object, key, { value, writable: true, configurable: true, enumerable: false });
hide(VirtualDate, 'now', () => floor(now));
hide(VirtualDate, 'parse', text => nativeParse(inUtc(Native.String(text))));
hide(VirtualDate, 'UTC', UTC);
hide(date, 'constructor', VirtualDate);
for (const field of ['FullYear', 'Month', 'Date', 'Hours', 'Minutes', 'Seconds', 'Milliseconds']) {
  hide(date, 'get' + field, date['getUTC' + field]);
  hide(date, 'set' + field, date['setUTC' + field]);
}
hide(date, 'getDay', date.getUTCDay);
hide(date, 'getYear', function () { return this.getUTCFullYear() - 1900; });
hide(date, 'setYear', function (year) {
  return this.setUTCFullYear(year >= 0 && year <= 99 ? 1900 + +year : year);
});
hide(date, 'getTimezoneOffset', function () { return this.getTime() * 0; });
const toUTCString = uncurry(date.toUTCString);
const dayOf = self => { // of "Thu, 01 Jan 2026 00:00:00 GMT"
  const text = toUTCString(self);
  return slice(text, 0, 3) + ' ' + slice(text, 8, 11) + ' ' + slice(text, 5, 7) + slice(text, 11, -13);
};
const clockOf = self => slice(toUTCString(self), -12) + '+0000 (Coordinated Universal Time)';
const isoDayOf = self => slice(self.toISOString(), 0, -14);
const timeOnlyOf = self => slice(toUTCString(self), -12, -4);
const isValid = self => self.getTime() === self.getTime();
const shown = (...parts) => function () {
  return isValid(this) ? parts.map(part => part(this)).join(' ') : 'Invalid Date';
};
hide(date, 'toString', shown(dayOf, clockOf));
hide(date, 'toDateString', shown(dayOf));
hide(date, 'toTimeString', shown(clockOf));
hide(date, 'toLocaleString', shown(isoDayOf, timeOnlyOf));
hide(date, 'toLocaleDateString', shown(isoDayOf));
hide(date, 'toLocaleTimeString', shown(timeOnlyOf));

// What the script finds, and what it doesn't

const give = (key, value) =>
  defineProperty(globalThis, key, { value, writable: false, configurable: false, enumerable: false });
const given = {
  agent, graph, parallel, pipeline, retry, sleep, phase, log, budget, console, setTimeout, clearTimeout,
  GraphError, AgentError, BudgetError, Date: VirtualDate,
};
for (const key of keys(given)) give(key, given[key]);
defineProperty(Math, 'random', { value: random, writable: false, configurable: false });
// Another clock, jobs of an error that nobody sees, when memory is freed, threads.
const REMOVED = [
  'performance', 'queueMicrotask', 'WeakRef', 'FinalizationRegistry', 'SharedArrayBuffer', 'Atomics',
];
for (const key of REMOVED) delete globalThis[key];
// It would hand out the functions of this file.
defineProperty(Error, 'prepareStackTrace', { value: undefined, writable: false, configurable: false });
// Who takes part in a race may lose it, and then runs on when the script ends: no forgotten agent.
for (const name of ['race', 'any']) {
  const native = uncurry(Promise[name]);
  hide(Promise, name, { [name](entrants) { raced = true; return native(this, entrants); } }[name]);
}

// The end

const writtenIfJson = value => {
  try { return writeAs('partial', value); } catch { return 'null'; }
};
const field = (value, key) => {
  try { return value[key]; } catch { return undefined; }
};
// With no memory left even for an error, the engine throws null, or a value of no type.
const NO_MEMORY = '{"name":"InternalError","message":"out of memory, or null was thrown"}';
const TYPES = freeze({
  __proto__: null, undefined: true, object: true, boolean: true, number: true, bigint: true,
  string: true, symbol: true, function: true,
});
const describe = error => {
  if (error === null || !TYPES[typeof error]) return NO_MEMORY;
  const thrown = typeof error === 'object' && error !== null ? error : create(null);
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
const fail = error => {
  if (finished !== null) return;
  finished = '{"error":{"name":"Error","message":"an error that has no words"}}';
  finished = '{"error":' + describe(error) + '}';
};
const forgotten = (count, rest) => fail(new GraphError(
  'the script ended ' + (count === 1 ? 'before a call' : 'before ' + count + ' calls')
  + ' of agent() or graph()' + rest, 'unawaited_agents'));
const end = value => {
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

// What the host calls

let roomOfTurn = 0;
const enter = message => {
  ({ now_ms: now, spent, total } = message);
  room = roomOfTurn;
};
const start = text => {
  const message = parse(text);
  roomOfTurn = message.room;
  enter(message);
  [a, b, c, d] = message.seed;
  for (let i = 0; i < 15; i++) random(); // a seed of few bits is mixed by then
  try {
    const head = '\n'.repeat(PAD_LINES - 1) + '"use strict";(async function (args) {\n';
    const script = evaluate(head + message.source + '\n})');
    then(apply(script, undefined, [message.args]), end, fail);
  } catch (error) {
    fail(error);
  }
};
const answer = (id, ok, value) => {
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
const settle = text => {
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
const joined = (items, count) => {
  let text = '[';
  for (let i = 0; i < count; i++) text += (i ? ',' : '') + items[i];
  return text + ']';
};
// One turn, to be called when no job is left; an empty text when there was no room for it.
const take = () => {
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
return { start, settle, take };
})()
